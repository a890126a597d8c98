"""A wallet's coins, individually and together: bits, exposure, and which to spend."""

from coinhaze.wallet.suggestion import Suggestion, suggest_coins
from coinhaze.wallet.wallet import HeldCoin, Wallet, weigh_wallet
from coinhaze.wallet.what_if import Proposal, WhatIf, propose, what_if

__all__ = [
    "HeldCoin",
    "Proposal",
    "Suggestion",
    "Wallet",
    "WhatIf",
    "propose",
    "suggest_coins",
    "weigh_wallet",
    "what_if",
]

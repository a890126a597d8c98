"""A wallet's coins: who learns what from a spend, bits, exposure, and which to spend."""

from coinhaze.wallet.parties import Parties, parties_of
from coinhaze.wallet.suggestion import Suggestion, suggest_coins
from coinhaze.wallet.wallet import HeldCoin, Wallet, weigh_wallet
from coinhaze.wallet.what_if import Proposal, WhatIf, propose, what_if
from coinhaze.wallet.who_learns import CoinKnowledge, Disclosure, Learnt

__all__ = [
    "CoinKnowledge",
    "Disclosure",
    "HeldCoin",
    "Learnt",
    "Parties",
    "Proposal",
    "Suggestion",
    "Wallet",
    "WhatIf",
    "parties_of",
    "propose",
    "suggest_coins",
    "weigh_wallet",
    "what_if",
]

"""A proposed payment, seen from a wallet: its effect, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.errors import InputError, first_few
from coinhaze.formats.lists.coins import parse_entry
from coinhaze.ledger.coins import Transaction
from coinhaze.wallet.wallet import Wallet
from coinhaze.wallet.what_if import WhatIf, what_if

LOSS = 1e-9  # bits; well above rounding errors


@dataclass(frozen=True, eq=False)
class Proposal:
    """The effect of coins in one payment, and warnings in words."""

    answer: WhatIf
    what: str  # a file, or how the coins were named
    warnings: tuple[str, ...]


def named_coins(text: str) -> list[str]:
    """Read a list of coin names.

    >>> named_coins("a:0, b:1")
    ['a:0', 'b:1']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError("the list of coins to spend is empty: name them txid:vout,txid:vout")
    entries = [parse_entry(name, "--spend") for name in names]
    for entry in entries:
        if entry.coin is None:
            raise InputError(f"--spend: {entry.address} is no coin; name coins txid:vout")
    return [entry.coin for entry in entries if entry.coin is not None]


def propose(wallet: Wallet, proposed: Transaction | Sequence[str], *, what: str) -> Proposal:
    """Evaluate a proposed payment against a wallet; raise an error for unknown coins."""
    answer = what_if(wallet.chain, proposed, exposed=wallet.coin_set.exposed)
    warnings = [
        *_ties(wallet, answer),
        *_losses(answer),
        *_strangers(wallet, answer),
        *_payments(wallet, answer),
    ]
    if len(answer.coins) > 1:
        warnings.append(
            "Coins spent together are taken to be one person's by anybody who sees the payment; "
            "the figures do not weigh that."
        )
    return Proposal(answer, what, tuple(warnings))


def _ties(wallet: Wallet, answer: WhatIf) -> list[str]:
    exposed = [c.name for c in answer.coins if (c.exposure or 0.0) > wallet.limit]
    others = [c.name for c in answer.coins if c.name not in exposed]
    if not exposed:
        return []
    if not others:
        return [f"It spends exposed money: {answer.exposure or 0.0:.2%} of it is."]
    return [
        f"It ties {_names(exposed)}, exposed, to {_names(others)}, not exposed: "
        f"{answer.exposure:.2%} of every payment would be exposed."
    ]


def _losses(answer: WhatIf) -> list[str]:
    after = answer.after.bits
    worse = [coin for coin in answer.coins if coin.bits > after + LOSS]
    return [
        f"{coin.name} has {coin.bits:.4f} bits, the payment would have {after:.4f}: "
        f"{coin.bits - after:.4f} less."
        for coin in worse
    ]


def _strangers(wallet: Wallet, answer: WhatIf) -> list[str]:
    strange = [coin.name for coin in answer.coins if wallet.named(coin.name) is None]
    return [f"Not in your list of coins: {_names(strange)}."] if strange else []


def _payments(wallet: Wallet, answer: WhatIf) -> list[str]:
    mine = (wallet.named(coin.name) for coin in answer.coins)
    spent = {holding.coin.address for holding in mine if holding is not None}
    found = []
    for output in answer.outputs:
        if output.address in answer.listed:
            found.append(f"It pays {output.address}, which is listed: that payment is exposed.")
        if output.address is not None and output.address in spent:
            found.append(f"It pays back to {output.address}, which shows that output to be change.")
    return found


def _names(names: Sequence[str]) -> str:
    return first_few(list(names), 5)

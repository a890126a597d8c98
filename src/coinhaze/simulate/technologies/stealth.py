"""Stealth addresses: payers create a fresh address that only the payee can recognise."""

from __future__ import annotations

from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technologies.plain import BY_ADDRESS, BY_COIN, make_plain
from coinhaze.simulate.technology import Realised, Technology


def make_stealth(intents: Intents, share: float, observer: str) -> Realised:
    """Send a share of receipts to fresh addresses, all others to one address per person."""
    return make_plain(intents, 1.0 - share, observer)


STEALTH = Technology(
    name="stealth",
    make=make_stealth,
    parameter="share of receipts at fresh addresses",
    least=0.0,
    most=1.0,
    values=(0.0, 0.25, 0.5, 0.75, 1.0),
    usual=1.0,
    says="stealth addresses: receipts go to addresses used once, beside one that is used again",
    observers={"addresses": BY_ADDRESS, "amounts": BY_COIN},
)

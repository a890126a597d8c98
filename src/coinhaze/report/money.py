"""What the amounts of a ledger are counted in."""

from __future__ import annotations

from coinhaze.cache.layers import network_of
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.units import SMALLEST, TOKENS, UNITS, Unit, unit_named

NOT_KNOWN = (
    "Amounts are in the ledger's smallest unit, since it does not say what its money is: "
    "--unit NAME:DECIMALS does."
)


def unit_of(ledger: Ledger, *, unit: str | None = None, token: str | None = None) -> Unit:
    """Give the unit that is named, else that of a known token or of the addresses' network."""
    if unit is not None:
        return unit_named(unit)
    if token is not None:
        return TOKENS.get(token.lower(), SMALLEST)
    owners = ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts
    return UNITS.get(network_of(owners) or "", SMALLEST)

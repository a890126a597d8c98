"""What the amounts of a ledger are counted in: what its source says, or else its addresses."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.bitcoin_raw.networks import common_networks
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.units import SMALLEST, UNITS, Unit, unit_named

# Blocks up to here are both Bitcoin's and Bitcoin Cash's; addresses of the old form are as well.
_LAST_COMMON = 478_558

MONEY_FACTS = ("total_moved", "unspent_value")  # of `facts` of a ledger, those that are amounts


def unit_of(ledger: Ledger, *, unit: str | None = None) -> Unit:
    """Give the unit that is named, else the ledger's own, else that of its addresses' network.

    `smallest` is the smallest unit of the ledger's money, by its name where it has one.

    >>> from coinhaze.ledger import AccountLedger
    >>> ledger = AccountLedger.from_transfers([("a", "b", 1)])
    >>> unit_of(ledger).words(1234), unit_of(ledger, unit="GEM:3").words(1234)
    ('1,234', '1.234 GEM')
    """
    if ledger.unit is not None:
        return chosen_unit(unit, ledger.unit)
    if isinstance(ledger, CoinLedger):
        last = pc.max(ledger.heights).as_py()
        return chosen_unit(unit, unit_of_addresses(ledger.owners, last))
    return chosen_unit(unit, unit_of_addresses(ledger.accounts))


def chosen_unit(unit: str | None, found: Unit) -> Unit:
    """Give the unit that is named, if one is, else what was found."""
    if unit is None:
        return found
    return found.in_smallest() if unit.lower() == "smallest" else unit_named(unit)


def unit_of_addresses(owners: pa.Array, last: int | None = None) -> Unit:
    """Give the money of the addresses' network; those of Ethereum hold many.

    `last` is the last height: up to the fork old addresses are those of Bitcoin, later of two.
    """
    networks = common_networks(owners)
    if networks == {"bitcoin", "bitcoin cash"} and last is not None and last <= _LAST_COMMON:
        networks = frozenset({"bitcoin"})
    units = {UNITS.get(network, SMALLEST) for network in networks}
    return units.pop() if len(units) == 1 else SMALLEST


def amount_texts(digits: pa.Array, unit: Unit) -> pa.Array:
    """Write a column of amounts, given as digits of the smallest unit, in a unit with its symbol.

    >>> amount_texts(pa.array(["1", "150000000", "0", None]), UNITS["bitcoin"]).to_pylist()
    ['0.00000001 BTC', '1.5 BTC', '0 BTC', None]
    """
    text = pc.cast(digits, pa.string())
    if unit.decimals:
        padded = pc.utf8_lpad(text, unit.decimals + 1, "0")
        whole = pc.utf8_slice_codeunits(padded, 0, -unit.decimals)
        part = pc.utf8_rtrim(pc.utf8_slice_codeunits(padded, -unit.decimals), "0")
        joined = pc.binary_join_element_wise(whole, part, ".")
        text = pc.if_else(pc.equal(part, ""), whole, joined)
    return pc.binary_join_element_wise(text, unit.symbol, " ") if unit.symbol else text


def with_amount_texts(table: pa.Table, unit: Unit, columns: Iterable[str]) -> pa.Table:
    """Put beside each of these columns of exact amounts one of what people read, at the end.

    Where the unit is not known, nothing is added: the digits are all that can be said.
    """
    for name in columns if unit.symbol else ():
        table = table.append_column(f"{name}_shown", amount_texts(table[name], unit))
    return table

"""Random ledgers and what an observer may know of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from twin import ZERO

Transfer = tuple[str, str, int]
Transaction = dict[str, Any]

ACCOUNTS = ("a", "b", "c", "d", "e")
ADDRESSES = ("p", "q", "r", "s")
POOLS = ("sprout", "sapling", "orchard", "ironwood")

SMALL = st.integers(1, 12)
LARGE = st.one_of(st.integers(1, 5), st.integers(2**63, 2**66), st.integers(2**200, 2**250))


def amounts() -> st.SearchStrategy[st.SearchStrategy[int]]:
    """Draw how large a ledger's amounts are: mostly small, so that balances come out even."""
    return st.sampled_from([SMALL, SMALL, LARGE])


# ---------------------------------------------------------------- accounts


@st.composite
def transfers(
    draw: st.DrawFn, *, maximum: int = 12, zero: bool = True, dropped: bool = True
) -> list[Transfer]:
    """Draw transfers among few accounts, so that cycles, repeats and self-transfers arise."""
    amount = draw(amounts())
    if dropped:
        amount = st.one_of(amount, amount, amount, st.just(0))
    accounts = st.sampled_from(ACCOUNTS[: draw(st.integers(2, len(ACCOUNTS)))])
    party = st.one_of(accounts, accounts, st.just(ZERO)) if zero else accounts
    rows = draw(st.lists(st.tuples(party, party, amount), min_size=1, max_size=maximum))
    if not any(value > 0 and sender != receiver for sender, receiver, value in rows):
        rows.append(("a", "b", draw(SMALL)))
    return rows


@st.composite
def tables(draw: st.DrawFn, needed: Mapping[str, int], *, complete: bool) -> dict[str, int]:
    """Draw a table of openings; a complete one gives every account at least what it needs."""
    table: dict[str, int] = {}
    for name, minimum in needed.items():
        extra = draw(st.sampled_from([0, 0, 1, 7, 2**70]))
        if complete:
            if minimum + extra > 0 or draw(st.booleans()):
                table[name] = minimum + extra
        elif draw(st.booleans()):
            table[name] = draw(st.sampled_from([extra, minimum // 2, minimum + extra]))
    if draw(st.booleans()):
        table["stranger"] = draw(SMALL)
    return table


# ---------------------------------------------------------------- coins and pools


@dataclass(frozen=True)
class _Coin:
    txid: str
    vout: int
    value: int
    address: str | None

    def entry(self, *, named: bool) -> dict[str, Any]:
        """Write the coin as an input, with or without what the ledger already says of it."""
        known = {"value": self.value, "address": self.address} if named else {}
        return {"txid": self.txid, "vout": self.vout} | known


def _parts(draw: st.DrawFn, total: int, count: int) -> list[int]:
    """Split a total into parts; some may be zero."""
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=count - 1, max_size=count - 1)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]


def _pool_flows(draw: st.DrawFn) -> dict[str, int]:
    """Draw what leaves pools (negative) and placeholders 0 for what may enter others."""
    if draw(st.integers(0, 2)) == 0:
        return {}
    pools = draw(st.lists(st.sampled_from(POOLS), min_size=1, max_size=2, unique=True))
    return {pool: -draw(st.sampled_from([0, 0, 1, 3, 8, 2**65])) for pool in pools}


@st.composite
def transactions(draw: st.DrawFn, *, maximum: int = 7, pools: bool = False) -> list[Transaction]:
    """Draw a UTXO ledger: coinbases, old coins, fees, zero values, reused and missing addresses."""
    amount = draw(amounts())
    address = st.sampled_from([None, *ADDRESSES[: draw(st.integers(1, len(ADDRESSES)))]])
    unspent: list[_Coin] = []
    ledger: list[Transaction] = []
    old = 0
    for number in range(draw(st.integers(1, maximum))):
        flows = _pool_flows(draw) if pools else {}
        spent = draw(st.lists(st.sampled_from(unspent), max_size=3, unique=True)) if unspent else []
        unspent = [coin for coin in unspent if coin not in spent]
        inputs = [coin.entry(named=draw(st.booleans())) for coin in spent]
        for _ in range(draw(st.integers(0, 2))):
            value = draw(st.one_of(amount, amount, amount, st.just(0)))
            spent.append(_Coin(f"old{old // 2}", old % 2, value, draw(address)))
            inputs.append(spent[-1].entry(named=True))
            old += 1
        unshielded = sum(-flow for flow in flows.values())
        coinbase = not spent and unshielded == 0
        money = draw(amount) if coinbase else sum(coin.value for coin in spent) + unshielded
        takers = [pool for pool, flow in flows.items() if flow == 0]
        outputs = draw(st.integers(1 if coinbase and not takers else 0, 4))
        fee = 0 if coinbase or draw(st.booleans()) else draw(st.integers(0, money))
        count = outputs + len(takers)
        parts = _parts(draw, money - fee, count) if count else []
        made = [_Coin(f"t{number}", vout, parts[vout], draw(address)) for vout in range(outputs)]
        flows |= dict(zip(takers, parts[outputs:], strict=True))
        unspent += made
        transaction: Transaction = {
            "txid": f"t{number}",
            "inputs": inputs,
            "outputs": [{"value": coin.value, "address": coin.address} for coin in made],
        }
        ledger.append(transaction | ({"pools": flows} if flows else {}))
    return ledger


# ---------------------------------------------------------------- rings


@st.composite
def ring_transactions(draw: st.DrawFn, *, maximum: int = 6) -> list[Transaction]:
    """Draw a ring ledger: rings of earlier outputs and of outputs from before the window."""
    made: list[str] = []
    ledger: list[Transaction] = []
    for number in range(draw(st.integers(1, maximum))):
        member = st.sampled_from([*made, "old0:0", "old0:1", "old1:0", "old2:3"])
        ring = st.lists(member, min_size=1, max_size=4, unique=True)
        rings = draw(st.lists(ring, min_size=0 if number else 1, max_size=2))
        outputs = draw(st.integers(1, 3))
        ledger.append({"txid": f"t{number}", "rings": rings, "outputs": outputs})
        made += [f"t{number}:{vout}" for vout in range(outputs)]
    return ledger


@st.composite
def posteriors(draw: st.DrawFn, ledger: Sequence[Transaction]) -> list[list[list[Fraction]]]:
    """Draw for every ring of every transaction how likely each member is; some may be zero."""
    return [
        [draw(distributions(len(ring))) for ring in transaction["rings"]] for transaction in ledger
    ]


# ---------------------------------------------------------------- what an observer knows


@st.composite
def distributions(draw: st.DrawFn, count: int) -> list[Fraction]:
    """Draw probabilities in sixteenths, exact as floats."""
    return [Fraction(part, 16) for part in _parts(draw, 16, count)]


@st.composite
def clusters(draw: st.DrawFn, names: Sequence[str]) -> dict[str, str]:
    """Draw a table name -> entity, the entity being a new name or its own first member."""
    groups = draw(st.lists(st.integers(0, 2), min_size=len(names), max_size=len(names)))
    table: dict[str, str] = {}
    for group in (1, 2):
        members = [name for name, number in zip(names, groups, strict=True) if number == group]
        if members:
            entity = draw(st.sampled_from([f"entity{group}", members[0]]))
            table |= dict.fromkeys(members, entity)
    return table


def listed(names: Sequence[str]) -> st.SearchStrategy[list[str]]:
    """Draw some of the names to ask about."""
    return st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=3, unique=True)


@st.composite
def links(draw: st.DrawFn, origins: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Fraction]]:
    """Draw for some payments a distribution over nodes that each may have come from."""
    payments = st.sampled_from(sorted(origins))
    result = {}
    for payment in draw(st.lists(payments, min_size=1, max_size=3, unique=True)):
        candidates = st.sampled_from(origins[payment])
        nodes = draw(st.lists(candidates, min_size=1, max_size=3, unique=True))
        shares = draw(distributions(len(nodes)))
        result[payment] = dict(zip(nodes, shares, strict=True))
    return result


def histories() -> st.SearchStrategy[list[int]]:
    """Draw the values that entered a pool before the window."""
    value = st.one_of(st.integers(0, 9), st.integers(2**64, 2**70))
    return st.lists(value, min_size=1, max_size=5).filter(lambda values: sum(values) > 0)

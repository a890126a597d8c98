"""Transactions as readers give them -> the columns of a coin ledger, every rule checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Amounts
from coinhaze.errors import LedgerError
from coinhaze.ledger.build.rules import check_rules
from coinhaze.ledger.checks import (
    check_name,
    check_pool,
    check_pool_values,
    exact_amount,
    whole_number,
)
from coinhaze.ledger.coins import (
    DUPLICATE_COINBASES,
    MAX_OUTPUTS,
    POOLS,
    CoinLedger,
    Input,
    Output,
    Transaction,
)


def assemble(
    records: Iterable[Transaction | Mapping[str, Any]],
    *,
    complete: bool,
    pool_values: Mapping[str, int],
) -> CoinLedger:
    """Build a coin ledger from transactions in ledger order."""
    transactions = _merge_identical(
        r if isinstance(r, Transaction) else Transaction.of(r) for r in records
    )
    columns = _Columns(transactions, complete=complete)
    for row, transaction in enumerate(transactions):
        columns.add(row, transaction)
    check_pool_values(pool_values, POOLS)
    return columns.checked(pool_values)


def place_of(transaction: Transaction) -> str:
    """Say where a transaction stands, for error messages."""
    name = f"transaction {transaction.txid}"
    return f"{transaction.where}: {name}" if transaction.where else name


def _merge_identical(records: Iterable[Transaction]) -> list[Transaction]:
    """Keep one of several identical transactions; refuse one id with two contents."""
    retained: list[Transaction] = []
    first: dict[str, Transaction] = {}
    for transaction in records:
        check_name(transaction.txid, place_of(transaction), field="txid")
        earlier = first.setdefault(_txid(transaction), transaction)
        lost, later = DUPLICATE_COINBASES.get(transaction.txid, (None, None))
        if earlier is transaction and transaction.height not in (lost, later):
            earlier = first.get(f"{transaction.txid}@{lost}", transaction)
        if earlier is transaction:
            retained.append(transaction)
        elif earlier != transaction:
            raise LedgerError(
                place_of(transaction),
                "the same id with other contents",
                value=_difference(earlier, transaction),
                fix=f"first seen at {earlier.where or 'an earlier row'}; keep the right one",
            )
    return retained


def _numbered(t: Transaction) -> Iterator[tuple[int, Output]]:
    """Give the outputs of a transaction with their numbers."""
    for position, output in enumerate(t.outputs):
        yield position if output.vout is None else output.vout, output


def _txid(t: Transaction) -> str:
    """Name a transaction; the lost one of a duplicate pair goes by id and height."""
    return f"{t.txid}@{t.height}" if _is_lost(t) else t.txid


def _is_lost(t: Transaction) -> bool:
    return t.txid in DUPLICATE_COINBASES and t.height == DUPLICATE_COINBASES[t.txid][0]


def _difference(a: Transaction, b: Transaction) -> str:
    for name in Transaction.__dataclass_fields__:
        if name != "where" and getattr(a, name) != getattr(b, name):
            return f"{name} {getattr(a, name)} and {getattr(b, name)}"
    return ""


class _Columns:
    """Growing columns of one ledger; `check_rules` looks at them when they are whole."""

    def __init__(self, transactions: list[Transaction], *, complete: bool) -> None:
        self.transactions = transactions
        self.complete = complete
        self.rows = {_txid(t): row for row, t in enumerate(transactions)}
        self.hidden = any(o.value is None for t in transactions for o in t.outputs)
        self.rings = any(t.rings for t in transactions)
        self.owners: dict[str, int] = {}
        self.unowned: set[str] = set()
        self.made = {
            (_txid(t), n) for t in transactions for n, _ in _numbered(t) if isinstance(n, int)
        }
        self.output_rows: dict[tuple[str, int], int] = {}
        self.earlier: dict[str, int] = {}
        self.outputs: list[tuple[int, int, int, int, bool]] = []
        self.coinbase = [False] * len(transactions)
        # Coins are named by transaction and number until all of them have rows.
        self.inputs: list[tuple[int, int, tuple[str, int]]] = []
        self.flows: list[tuple[int, int, int]] = []
        self.ring_members: list[tuple[int, int, tuple[str, int], float]] = []

    def add(self, row: int, t: Transaction) -> None:
        """Add one transaction: what it spends first, then what it makes."""
        place = place_of(t)
        for field, value in (("height", t.height), ("time", t.time)):
            if value is not None:
                whole_number(value, place, field=field)
        for vin, spent in enumerate(t.inputs):
            self.inputs.append((row, vin, self._coin(row, spent, f"{place}, input {vin}")))
        for vin, ring in enumerate(t.rings):
            self._add_ring(row, vin, ring, t, place)
        paid = self._make(row, t, place)
        takes = bool(t.inputs or t.rings)
        for pool, into in t.pools:
            number = check_pool(pool, place, POOLS)
            if isinstance(into, bool) or not isinstance(into, int):
                raise LedgerError(place, "pool flow is not a whole number", value=into)
            exact_amount(abs(into), place, field="pool flow")
            if into:
                self.flows.append((row, number, into))
            paid += max(into, 0)
            takes |= into < 0
        if t.coinbase is False and not takes and paid > 0:
            raise LedgerError(
                place, "outputs above inputs", value=f"{paid} out, 0 in", fix="no inputs given"
            )
        self.coinbase[row] = bool(t.coinbase) or not takes

    def _make(self, row: int, t: Transaction, place: str) -> int:
        total = 0
        lost = _is_lost(t)
        for vout, output in _numbered(t):
            whole_number(vout, place, field="output number", maximum=MAX_OUTPUTS)
            value = 0
            if output.value is not None:
                value = exact_amount(output.value, f"{place}, output {vout}", field="value")
            total += value
            coin = (_txid(t), vout)
            self._add_output(row, coin, value, output.address, output.spendable and not lost, place)
        return total

    def _add_output(
        self,
        row: int,
        coin: tuple[str, int],
        value: int,
        address: str | None,
        spendable: bool,
        place: str,
    ) -> None:
        txid, vout = coin
        if not address:
            address = f"{txid}:{vout}"
            self.unowned.add(address)
        if address not in self.owners:
            check_name(address, place, field="address")
        owner = self.owners.setdefault(address, len(self.owners))
        self.output_rows.setdefault(coin, len(self.outputs))
        self.outputs.append((row, vout, value, owner, spendable))

    def _add_ring(
        self, row: int, vin: int, ring: tuple[Input, ...], t: Transaction, place: str
    ) -> None:
        here = f"{place}, ring {vin}"
        if not ring:
            raise LedgerError(here, "a ring with no member")
        chances: tuple[float, ...] = (1 / len(ring),) * len(ring)
        if t.posteriors:
            chances = t.posteriors[vin] if vin < len(t.posteriors) else ()
        if len(chances) != len(ring) or not all(chance >= 0 for chance in chances):
            raise LedgerError(here, "a posterior that is no distribution", value=chances)
        for member, chance in zip(ring, chances, strict=True):
            self.ring_members.append((row, vin, self._coin(row, member, here), chance))

    def _coin(self, row: int, spent: Input, place: str) -> tuple[str, int]:
        """Name a spent coin, taking it up as an earlier one if the window allows."""
        coin, name = (spent.txid, spent.vout), f"{spent.txid}:{spent.vout}"
        if coin in self.output_rows:
            known = self.outputs[self.output_rows[coin]][2]
            if spent.value is not None and spent.value != known and not self.hidden:
                both = f"{spent.value} here, {known} where made"
                raise LedgerError(place, f"{name} with two values", value=both)
        elif coin in self.made:
            pass  # made by this transaction or a later one: the rules say which
        elif spent.txid in self.rows:
            raise LedgerError(place, "spends an output its transaction does not have", value=name)
        elif self.complete:
            raise LedgerError(
                place, "an unknown coin in a complete ledger", value=name, fix="drop `complete`?"
            )
        else:
            self._add_earlier(spent, name, place)
        return coin

    def _add_earlier(self, spent: Input, name: str, place: str) -> None:
        check_name(spent.txid, place, field="spent txid")
        whole_number(spent.vout, place, field="output number", maximum=MAX_OUTPUTS)
        value = 0
        if spent.value is None and not (self.hidden or self.rings):
            raise LedgerError(
                place,
                "an earlier coin without a value",
                value=name,
                fix="enrich the export so that inputs carry values",
            )
        if spent.value is not None:
            value = exact_amount(spent.value, place, field="value")
        number = self.earlier.setdefault(spent.txid, -1 - len(self.earlier))
        self._add_output(number, (spent.txid, spent.vout), value, spent.address, True, place)

    def checked(self, pool_values: Mapping[str, int]) -> CoinLedger:
        """Give the finished ledger if it keeps all rules."""
        ledger = self.ledger(pool_values)
        check_rules(ledger, self._place)
        return replace(ledger, output_value=None) if self.rings else ledger

    def _place(self, table: str, row: int | None) -> str:
        """Say in which transaction a row of a table was given."""
        if table == "owners" or row is None:
            return table
        if table == "inputs":
            tx, vin, _ = self.inputs[row]
            return f"{place_of(self.transactions[tx])}, input {vin}"
        if table == "rings":
            tx, vin, _, _ = self.ring_members[row]
            return f"{place_of(self.transactions[tx])}, ring {vin}"
        if table == "transactions":
            tx = row - len(self.earlier)
        else:
            tx = self.outputs[row][0] if table == "outputs" else self.flows[row][0]
        if tx >= 0:
            return place_of(self.transactions[tx])
        earlier = row if table == "transactions" else -1 - tx
        return f"earlier transaction {list(self.earlier)[earlier]}"

    def ledger(self, pool_values: Mapping[str, int]) -> CoinLedger:
        """Give the finished ledger: earlier transactions first, then the window's in order."""
        before = len(self.earlier)
        txids = [*self.earlier, *(_txid(t) for t in self.transactions)]
        inside = np.arange(len(txids)) >= before
        output_tx, vouts, owners, spendable = _ints(
            [(t, n, o, s) for t, n, _, o, s in self.outputs], 4
        )
        # Earlier transactions were numbered -1, -2, ... in the order met.
        output_tx = np.where(output_tx < 0, -1 - output_tx, output_tx + before)
        input_tx, input_output = _ints([(t, self.output_rows[c]) for t, _, c in self.inputs], 2)
        flow_tx, flow_pool = _ints([flow[:2] for flow in self.flows], 2)
        ring_tx, ring_vin, ring_output = _ints(
            [(t, vin, self.output_rows[c]) for t, vin, c, _ in self.ring_members], 3
        )
        given = any(t.posteriors for t in self.transactions)
        return CoinLedger(
            txids=pa.array(txids, pa.string()),
            inside=inside,
            coinbase=np.array([False] * before + self.coinbase, dtype=np.bool_),
            heights=pa.array([None] * before + [t.height for t in self.transactions], pa.int64()),
            times=pa.array([None] * before + [t.time for t in self.transactions], pa.int64()),
            owners=pa.array(list(self.owners), pa.string()),
            owner_is_coin=np.array([o in self.unowned for o in self.owners], dtype=np.bool_),
            output_tx=output_tx,
            output_vout=vouts,
            output_value=None if self.hidden else Amounts.of([o[2] for o in self.outputs]),
            output_owner=owners,
            output_spendable=spendable.astype(np.bool_),
            input_tx=input_tx + before,
            input_output=input_output,
            flow_tx=flow_tx + before,
            flow_pool=flow_pool,
            flow_into=Amounts.of([f[2] for f in self.flows]),
            ring_tx=ring_tx + before,
            ring_vin=ring_vin,
            ring_output=ring_output,
            ring_probability=np.array([m[3] for m in self.ring_members]) if given else None,
            complete=self.complete,
            pool_values=dict(pool_values),
        )


def _ints(rows: list[Any], width: int) -> list[np.typing.NDArray[np.int64]]:
    """Turn rows into integer columns; amounts travel apart, since they may not fit 64 bits."""
    if not rows:
        return [np.zeros(0, dtype=np.int64)] * width
    return [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]

"""The slow twin: transactions taken one at a time, every rule checked as each is added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Amounts
from coinhaze.errors import LedgerError
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
    Transaction,
)


def assemble_one_by_one(
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
    return columns.ledger(pool_values)


def place_of(transaction: Transaction) -> str:
    """Say where a transaction stands, for error messages."""
    name = f"transaction {transaction.txid}"
    return f"{transaction.where}: {name}" if transaction.where else name


def _merge_identical(records: Iterable[Transaction]) -> list[Transaction]:
    """Keep one of several identical transactions; refuse one id with two contents."""
    kept: list[Transaction] = []
    first: dict[str, Transaction] = {}
    for transaction in records:
        check_name(transaction.txid, place_of(transaction), field="txid")
        earlier = first.setdefault(_txid(transaction), transaction)
        lost, later = DUPLICATE_COINBASES.get(transaction.txid, (None, None))
        if earlier is transaction and transaction.height not in (lost, later):
            earlier = first.get(f"{transaction.txid}@{lost}", transaction)
        if earlier is transaction:
            kept.append(transaction)
        elif earlier != transaction:
            raise LedgerError(
                place_of(transaction),
                "the same id with other contents",
                value=_difference(earlier, transaction),
                fix=f"first seen at {earlier.where or 'an earlier row'}; keep the right one",
            )
    return kept


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
    """Growing columns of one ledger."""

    def __init__(self, transactions: list[Transaction], *, complete: bool) -> None:
        self.transactions = transactions
        self.complete = complete
        self.rows = {_txid(t): row for row, t in enumerate(transactions)}
        self.hidden = any(o.value is None for t in transactions for o in t.outputs)
        self.rings = any(t.rings for t in transactions)
        self.owners: dict[str, int] = {}
        self.unowned: set[str] = set()
        self.output_rows: dict[tuple[str, int], int] = {}
        self.spent_by: dict[int, str] = {}
        self.earlier: dict[str, int] = {}
        self.outputs: list[tuple[int, int, int, int, bool]] = []
        self.coinbase = [False] * len(transactions)
        self.inputs: list[tuple[int, int]] = []
        self.flows: list[tuple[int, int, int]] = []
        self.ring_members: list[tuple[int, int, int, float]] = []

    def add(self, row: int, t: Transaction) -> None:
        """Add one transaction: what it spends first, then what it makes."""
        place = place_of(t)
        for field, value in (("height", t.height), ("time", t.time)):
            if value is not None:
                whole_number(value, place, field=field)
        value_in = sum(self._spend(row, vin, i, place) for vin, i in enumerate(t.inputs))
        for vin, ring in enumerate(t.rings):
            self._add_ring(row, vin, ring, t, place)
        value_out = self._make(row, t, place)
        from_pools = 0
        for pool, into in t.pools:
            number = check_pool(pool, place, POOLS)
            if isinstance(into, bool) or not isinstance(into, int):
                raise LedgerError(place, "pool flow is not a whole number", value=into)
            exact_amount(abs(into), place, field="pool flow")
            if into:
                self.flows.append((row, number, into))
            value_in += max(-into, 0)
            value_out += max(into, 0)
            from_pools += max(-into, 0)
        is_coinbase = not (t.inputs or t.rings or from_pools)
        if t.coinbase and not is_coinbase:
            raise LedgerError(place, "a coinbase that spends", fix="a coinbase has no inputs")
        if t.coinbase is False and is_coinbase and value_out > 0:
            raise LedgerError(
                place, "outputs above inputs", value=f"{value_out} out, 0 in", fix="no inputs given"
            )
        self.coinbase[row] = is_coinbase
        if not (is_coinbase or self.hidden or t.rings) and value_out > value_in:
            raise LedgerError(
                place, "outputs above inputs", value=f"{value_out} out, {value_in} in"
            )

    def _make(self, row: int, t: Transaction, place: str) -> int:
        total = 0
        lost = _is_lost(t)
        for position, output in enumerate(t.outputs):
            vout = position if output.vout is None else output.vout
            whole_number(vout, place, field="output number", maximum=MAX_OUTPUTS)
            if (_txid(t), vout) in self.output_rows:
                raise LedgerError(place, "two outputs with one number", value=vout)
            value = 0
            if output.value is not None:
                value = exact_amount(output.value, f"{place}, output {vout}", field="value")
            total += value
            self._add_output(
                row, _txid(t), vout, value, output.address, output.spendable and not lost, place
            )
        return total

    def _add_output(
        self,
        row: int,
        txid: str,
        vout: int,
        value: int,
        address: str | None,
        spendable: bool,
        place: str,
    ) -> int:
        if not address:
            address = f"{txid}:{vout}"
            self.unowned.add(address)
        if address not in self.owners:
            check_name(address, place, field="address")
        owner = self.owners.setdefault(address, len(self.owners))
        self.outputs.append((row, vout, value, owner, spendable))
        self.output_rows[txid, vout] = len(self.outputs) - 1
        return len(self.outputs) - 1

    def _spend(self, row: int, vin: int, spent: Input, place: str) -> int:
        output = self._coin(row, spent, f"{place}, input {vin}")
        name = f"{spent.txid}:{spent.vout}"
        if output in self.spent_by:
            raise LedgerError(
                place, "a coin spent twice", value=name, fix=f"also by {self.spent_by[output]}"
            )
        if not self.outputs[output][4]:
            raise LedgerError(place, "spends a coin that can never be spent", value=name)
        self.spent_by[output] = self.transactions[row].txid
        self.inputs.append((row, output))
        return self.outputs[output][2]

    def _add_ring(
        self, row: int, vin: int, ring: tuple[Input, ...], t: Transaction, place: str
    ) -> None:
        here = f"{place}, ring {vin}"
        if not ring:
            raise LedgerError(here, "a ring with no member")
        chances: tuple[float, ...] = (1 / len(ring),) * len(ring)
        if t.posteriors:
            chances = t.posteriors[vin] if vin < len(t.posteriors) else ()
        fits = len(chances) == len(ring)
        if not (fits and min(chances) >= 0 and abs(sum(chances) - 1) <= 1e-9):
            raise LedgerError(here, "a posterior that is no distribution", value=chances)
        for member, chance in zip(ring, chances, strict=True):
            self.ring_members.append((row, vin, self._coin(row, member, here), chance))

    def _coin(self, row: int, spent: Input, place: str) -> int:
        """Find the row of a spent coin, taking it up as an earlier one if the window allows."""
        name = f"{spent.txid}:{spent.vout}"
        output = self.output_rows.get((spent.txid, spent.vout))
        if output is not None:
            known = self.outputs[output][2]
            given = spent.value
            if given is not None and given != known and not self.hidden:
                raise LedgerError(
                    place, f"{name} with two values", value=f"{given} here, {known} where made"
                )
            return output
        made = self.rows.get(spent.txid)
        if made == row:
            raise LedgerError(place, "a transaction that spends its own output", value=name)
        if made is not None and made > row:
            raise LedgerError(
                place, "a coin spent before it is made", value=name, fix="check the order"
            )
        if made is not None:
            raise LedgerError(place, "spends an output its transaction does not have", value=name)
        if self.complete:
            raise LedgerError(
                place, "an unknown coin in a complete ledger", value=name, fix="drop `complete`?"
            )
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
        return self._add_output(number, spent.txid, spent.vout, value, spent.address, True, place)

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
        input_tx, input_output = _ints(self.inputs, 2)
        flow_tx, flow_pool = _ints([flow[:2] for flow in self.flows], 2)
        ring_tx, ring_vin, ring_output = _ints([m[:3] for m in self.ring_members], 3)
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
            output_value=None
            if self.hidden or self.rings
            else Amounts.of([o[2] for o in self.outputs]),
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

"""Coin transactions recorded one by one, in columns, and turned into a ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Ints
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction

START = 1_612_137_600  # 1 February 2021, as in the simulated weeks
BLOCKS_AN_HOUR = 6


@dataclass
class CoinRecord:
    """The transactions so far; coins are numbered in order of creation, earlier coins first."""

    earlier: int = 0  # number of earlier coins, each from a transaction of its own
    times: list[float] = field(default_factory=list)  # hours, one per transaction
    tx: list[int] = field(default_factory=list)
    vout: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    address: list[str] = field(default_factory=list)
    spendable: list[bool] = field(default_factory=list)
    input_tx: list[int] = field(default_factory=list)
    input_coin: list[int] = field(default_factory=list)
    flow_tx: list[int] = field(default_factory=list)
    flow_pool: list[str] = field(default_factory=list)
    flow_into: list[int] = field(default_factory=list)

    def add_earlier(self, value: int, address: str) -> int:
        """Record a coin from before the window; return its number."""
        assert not self.times, "earlier coins come first"
        self.earlier += 1
        return self._add_coin(self.earlier - 1, 0, value, address)

    def begin(self, time: float) -> int:
        """Begin a transaction; return its number."""
        self.times.append(time)
        return len(self.times) - 1

    def add_input(self, coin: int) -> None:
        """Spend a coin in the current transaction."""
        self.input_tx.append(len(self.times) - 1)
        self.input_coin.append(coin)

    def add_output(self, vout: int, value: int, address: str) -> int:
        """Create a coin in the current transaction; return its number."""
        return self._add_coin(len(self.times) - 1, vout, value, address)

    def add_data(self, vout: int) -> None:
        """Create an output that holds data and can never be spent."""
        tx = len(self.times) - 1
        self._add_coin(tx, vout, 0, f"{self.txid(tx)}:{vout}", spendable=False)

    def add_flow(self, pool: str, into: int) -> None:
        """Move money into a pool, or out of it, in the current transaction."""
        self.flow_tx.append(len(self.times) - 1)
        self.flow_pool.append(pool)
        self.flow_into.append(into)

    def txid(self, tx: int) -> str:
        """Return the id of a transaction."""
        return f"t{tx}"

    def name(self, coin: int) -> str:
        """Return the name of a coin in the ledger."""
        if coin < self.earlier:
            return f"before{coin}:0"
        return f"{self.txid(self.tx[coin])}:{self.vout[coin]}"

    def transactions(self) -> list[Transaction]:
        """Return the recorded transactions."""
        inputs: list[list[Input]] = [[] for _ in self.times]
        outputs: list[list[Output]] = [[] for _ in self.times]
        pools: list[list[tuple[str, int]]] = [[] for _ in self.times]
        for tx, coin in zip(self.input_tx, self.input_coin, strict=True):
            txid = self.name(coin).partition(":")[0]
            inputs[tx].append(Input(txid, self.vout[coin], self.value[coin], self.address[coin]))
        for coin in range(self.earlier, len(self.value)):
            address, spendable = self.address[coin], self.spendable[coin]
            outputs[self.tx[coin]].append(
                Output(self.value[coin], address if spendable else None, spendable=spendable)
            )
        flows = zip(self.flow_tx, self.flow_pool, self.flow_into, strict=True)
        for tx, pool, into in flows:
            pools[tx].append((pool, into))
        return [
            Transaction(
                self.txid(tx),
                tuple(inputs[tx]),
                tuple(outputs[tx]),
                tuple(pools[tx]),
                height=int(hours * BLOCKS_AN_HOUR),
                time=START + int(hours * 3600),
            )
            for tx, hours in enumerate(self.times)
        ]

    def ledger(self, *, hidden: bool = False) -> CoinLedger:
        """Return the ledger, fully validated; with `hidden`, without amounts.

        Of the earlier coins, the ledger contains only those that were spent.
        """
        number = np.arange(len(self.value))
        retained = (number >= self.earlier) | np.isin(number, self.input_coin)
        row = np.cumsum(retained) - 1
        before = int(retained[: self.earlier].sum())
        outputs, owners = self._outputs(retained, before)
        if hidden:
            values = pa.nulls(len(outputs), pa.int64())
            outputs = outputs.set_column(outputs.column_names.index("value"), "value", values)
        inputs = {
            "tx": _numbers(self.input_tx) + before,
            "output": row[_numbers(self.input_coin)],
        }
        flows = {
            "tx": _numbers(self.flow_tx) + before,
            "pool": pa.array(self.flow_pool, pa.string()),
            "into_pool": _numbers(self.flow_into),
        }
        return CoinLedger.from_columns(
            {
                "transactions": self._transactions(np.flatnonzero(retained[: self.earlier])),
                "owners": owners,
                "outputs": outputs,
                "inputs": pa.table(inputs),
                "pool_flows": pa.table(flows),
                "rings": pa.table({c: _numbers([]) for c in ("tx", "vin", "output")}),
            }
        )

    def _outputs(self, retained: Bools, before: int) -> tuple[pa.Table, pa.Table]:
        """Return the tables of outputs and of their owners; data outputs are their own owners."""
        tx = _numbers(self.tx) + before
        tx[: self.earlier] = np.cumsum(retained[: self.earlier]) - 1
        address = pa.array(self.address, pa.string()).filter(pa.array(retained)).dictionary_encode()
        spendable = np.array(self.spendable, dtype=np.bool_)
        data = {self.address[k] for k in np.flatnonzero(~spendable).tolist()}
        is_coin = [name in data for name in address.dictionary.to_pylist()]
        outputs = {
            "tx": tx[retained],
            "vout": _numbers(self.vout)[retained],
            "value": _numbers(self.value)[retained],
            "owner": address.indices,
            "spendable": spendable[retained],
        }
        owners = {"name": address.dictionary, "is_coin": pa.array(is_coin, pa.bool_())}
        return pa.table(outputs), pa.table(owners)

    def _transactions(self, spent: Ints) -> pa.Table:
        """Return the table of transactions, after those of the earlier coins that were spent."""
        before, n = len(spent), len(self.times)
        hours = np.array(self.times, dtype=np.float64)
        names = [f"before{k}" for k in spent.tolist()] + [self.txid(k) for k in range(n)]
        missing = pa.nulls(before, pa.int64())
        height = (hours * BLOCKS_AN_HOUR).astype(np.int64)
        time = START + (hours * 3600).astype(np.int64)
        return pa.table(
            {
                "txid": pa.array(names, pa.string()),
                "inside": np.repeat([False, True], [before, n]),
                "coinbase": np.zeros(before + n, dtype=np.bool_),
                "height": pa.concat_arrays([missing, pa.array(height)]),
                "time": pa.concat_arrays([missing, pa.array(time)]),
            }
        )

    def _add_coin(
        self, tx: int, vout: int, value: int, address: str, *, spendable: bool = True
    ) -> int:
        self.tx.append(tx)
        self.vout.append(vout)
        self.value.append(value)
        self.address.append(address)
        self.spendable.append(spendable)
        return len(self.value) - 1


def _numbers(column: list[int]) -> Ints:
    return np.array(column, dtype=np.int64)

"""The ledger of coins: transactions that spend outputs and make new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Amounts, Bools, Ints
from coinhaze.errors import LedgerError, UnknownName
from coinhaze.ledger.checks import TablePlace, default_place
from coinhaze.ledger.completeness import Completeness
from coinhaze.ledger.frames import ArrowTable, shown
from coinhaze.ledger.frozen import freeze
from coinhaze.units import Unit

POOLS = ("sprout", "sapling", "orchard", "ironwood", "shielded")
MAX_OUTPUTS = 2**32 - 1
# All the earlier coins of unknown value that one transaction spends go by this and its id, as one.
UNKNOWN = "unknown@"
# The two coinbase ids that were used twice (BIP30): txid -> heights of the lost and the later one.
DUPLICATE_COINBASES = {
    "e3bf3d07d4b0375638d5f1db5255fe07ba2c4cb067cd81b84ee974b6585fb468": (91722, 91880),
    "d5d27987d2a3dfc724e359870c6644b40e497bdc0589a033220fe15429d88599": (91812, 91842),
}


@dataclass(frozen=True, slots=True)
class Input:
    """A coin a transaction spends; value and address may be left to the output that made it."""

    txid: str
    vout: int
    value: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A coin a transaction makes; no address: it is its own owner; no value: it is hidden."""

    value: int | None
    address: str | None = None
    vout: int | None = None
    spendable: bool = True


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction as readers give it; `where` is for error messages only."""

    txid: str
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    pools: tuple[tuple[str, int], ...] = ()
    rings: tuple[tuple[Input, ...], ...] = ()
    posteriors: tuple[tuple[float, ...], ...] = ()
    coinbase: bool | None = None
    height: int | None = None
    time: int | None = None
    where: str = field(default="", compare=False)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Transaction:
        """Build from a plain mapping with txid, inputs, outputs, pools, rings.

        A ring is a list of `txid:vout`; hidden outputs may be given as their number.

        >>> Transaction.of({"txid": "t", "inputs": [], "outputs": [{"value": 5}]}).outputs[0].value
        5
        """
        try:
            return cls._of(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            where = f"transaction {record.get('txid')}"
            raise LedgerError(where, f"not a transaction: {error!r}", value=record) from None

    @classmethod
    def _of(cls, record: Mapping[str, Any]) -> Transaction:
        outputs = record.get("outputs", ())
        if isinstance(outputs, int):
            outputs = [{"value": None}] * outputs
        rings = record.get("rings", ())
        return cls(
            txid=record["txid"],
            inputs=tuple(Input(**i) for i in record.get("inputs", ())),
            outputs=tuple(Output(**o) for o in outputs),
            pools=tuple(record.get("pools", {}).items()),
            rings=tuple(tuple(_member(m) for m in ring) for ring in rings),
            posteriors=tuple(tuple(p) for p in record.get("posteriors", ())),
            coinbase=record.get("coinbase"),
            height=record.get("height"),
            time=record.get("time"),
        )


def _member(name: str) -> Input:
    txid, _, vout = name.rpartition(":")
    return Input(txid, int(vout))


@dataclass(frozen=True, eq=False)
class CoinLedger(ArrowTable):
    """Transactions in ledger order, the coins they spend and make, pool flows and rings.

    Rows refer to each other by index. Transactions with `inside` false were made before the
    window: of them only the outputs spent in the window are known.

    >>> ledger = CoinLedger.from_transactions([
    ...     {"txid": "a", "inputs": [], "outputs": [{"value": 50, "address": "miner"}]},
    ...     {"txid": "b", "inputs": [{"txid": "a", "vout": 0}],
    ...      "outputs": [{"value": 20, "address": "shop"}, {"value": 30, "address": "miner"}]},
    ... ])
    >>> ledger.output_names().to_pylist()
    ['a:0', 'b:0', 'b:1']
    """

    txids: pa.StringArray
    inside: Bools
    coinbase: Bools
    heights: pa.Int64Array
    times: pa.Int64Array
    owners: pa.StringArray
    owner_is_coin: Bools  # outputs without an address, which own themselves
    output_tx: Ints
    output_vout: Ints
    output_value: Amounts | None
    output_owner: Ints
    output_spendable: Bools
    input_tx: Ints
    input_output: Ints
    flow_tx: Ints
    flow_pool: Ints
    flow_into: Amounts
    ring_tx: Ints
    ring_vin: Ints
    ring_output: Ints
    ring_probability: np.typing.NDArray[np.float64] | None = None
    complete: bool = False
    pool_values: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader passed over on request
    completeness: Completeness = field(default_factory=Completeness)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # used, unused, unknown
    unit: Unit | None = None  # what amounts are counted in, where the source says it

    @classmethod
    def from_transactions(
        cls,
        transactions: Iterable[Transaction | Mapping[str, Any]],
        *,
        complete: bool = False,
        pool_values: Mapping[str, int] | None = None,
    ) -> CoinLedger:
        """Build from transactions in ledger order, checking every rule of the data model.

        `complete`: the ledger begins with the chain, so an unknown coin is an error, not a source.
        `pool_values`: what the chain says each pool held when the window began.
        """
        from coinhaze.ledger.build.assemble import assemble

        return assemble(transactions, complete=complete, pool_values=pool_values or {})

    @classmethod
    def from_columns(
        cls,
        tables: Mapping[str, pa.Table],
        *,
        complete: bool = False,
        pool_values: Mapping[str, int] | None = None,
        place: TablePlace = default_place,
    ) -> CoinLedger:
        """Build from tables as `tables()` gives them, checking every rule of the data model.

        `place` says where a row of a table was read, for errors.
        """
        from coinhaze.ledger.build.tables import ledger_from_tables

        return ledger_from_tables(
            tables, complete=complete, pool_values=pool_values or {}, place=place
        )

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return f"CoinLedger({len(self)} transactions, {len(self.output_tx)} coins)"

    def _repr_html_(self) -> str:
        return shown("ledger", self)

    @cached_property
    def block_heights(self) -> pa.Int64Array:
        """The number of each transaction's block: all null where times stand in their place."""
        known = len(self.heights) - self.heights.null_count
        same = pc.sum(pc.equal(self.heights, self.times)).as_py() or 0
        return self.heights if known > same else pa.nulls(len(self.heights), pa.int64())

    def to_arrow(self) -> pa.Table:
        """Give the coins as a table: what made each, its value and address, and what spent it.

        `tables` gives all that the ledger holds, in tables that refer to each other.
        """
        made = pa.array(self.output_tx)
        spender = np.full(len(self.output_tx), -1)
        if not self.has_rings:  # there nobody knows
            spender[self.input_output] = self.input_tx
        owner = pa.array(self.output_owner, mask=self.owner_is_coin[self.output_owner])
        return pa.table(
            {
                "coin": self.output_names(),
                "txid": self.txids.take(made),
                "vout": self.output_vout,
                "value": self.tables()["outputs"]["value"],
                "address": self.owners.take(owner),
                "height": self.heights.take(made),
                "time": self.times.take(made),
                "spent_by": self.txids.take(pa.array(spender, mask=spender < 0)),
            }
        )

    def __len__(self) -> int:
        return int(self.inside.sum())

    @property
    def has_rings(self) -> bool:
        """Tell whether inputs are rings of possible coins."""
        return len(self.ring_tx) > 0

    @property
    def has_unknown(self) -> bool:
        """Tell whether earlier coins of unknown value and owner are among those spent."""
        earlier = self.txids.slice(0, len(self.inside) - len(self))
        return bool(pc.any(pc.starts_with(earlier, UNKNOWN)).as_py())

    def output_names(self, outputs: Ints | None = None) -> pa.StringArray:
        """Name outputs `txid:vout`, all of them or those given by number."""
        rows = slice(None) if outputs is None else outputs
        txids = self.txids.take(pa.array(self.output_tx[rows]))
        vouts = pc.cast(pa.array(self.output_vout[rows]), txids.type)
        return pc.binary_join_element_wise(txids, vouts, ":")

    def payment_rows(self, names: Sequence[str]) -> Ints:
        """Find outputs by `txid:vout`."""
        rows = pc.index_in(pa.array(names, pa.string()), value_set=self.output_names())
        for name, row in zip(names, rows.to_pylist(), strict=True):
            if row is None or not self.inside[self.output_tx[row]]:
                raise UnknownName(f"no output {name!r} made in the ledger: name it txid:vout")
        return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)

    def facts(self) -> dict[str, object]:
        """Count what the ledger holds."""
        inside = self.inside[self.output_tx]
        unspent = inside & self.output_spendable
        unspent[self.input_output] = False
        heights = pc.min_max(self.block_heights)
        hidden = self.output_value is None
        return {
            "kind": "coins",
            "transactions": len(self),
            "coinbases": int(self.coinbase.sum()),
            "inputs": len(self.input_tx),
            "outputs": int(inside.sum()),
            "earlier_coins_spent": int((~inside).sum()),
            "owners": len(self.owners),
            "unspent": None if self.has_rings else int(unspent.sum()),
            "unspent_value": None
            if self.output_value is None
            else sum(self.output_value.take(unspent).ints()),
            "amounts": "hidden" if hidden else "known",
            "pools": sorted({POOLS[p] for p in self.flow_pool.tolist()}),
            "pool_flows": len(self.flow_tx),
            "ring_members": len(self.ring_tx),
            "first_height": heights["min"].as_py(),
            "last_height": heights["max"].as_py(),
        }

    def tables(self, *, packed: bool = False) -> dict[str, pa.Table]:
        """Give the ledger as Arrow tables, described in the data model.

        Values that do not fit 64 bits are decimal text, or 32 bytes each if `packed`.
        """
        value = pa.nulls(len(self.output_tx), pa.int64())
        if self.output_value is not None:
            value = self.output_value.packed() if packed else self.output_value.to_arrow()
        return {
            "transactions": pa.table(
                {
                    "txid": self.txids,
                    "inside": self.inside,
                    "coinbase": self.coinbase,
                    "height": self.heights,
                    "time": self.times,
                }
            ),
            "owners": pa.table({"name": self.owners, "is_coin": self.owner_is_coin}),
            "outputs": pa.table(
                {
                    "tx": self.output_tx,
                    "vout": self.output_vout,
                    "value": value,
                    "owner": self.output_owner,
                    "spendable": self.output_spendable,
                }
            ),
            "inputs": pa.table({"tx": self.input_tx, "output": self.input_output}),
            "pool_flows": pa.table(
                {
                    "tx": self.flow_tx,
                    "pool": pa.array(POOLS).take(pa.array(self.flow_pool)),
                    "into_pool": self.flow_into.to_arrow(),
                }
            ),
            "rings": pa.table(
                {"tx": self.ring_tx, "vin": self.ring_vin, "output": self.ring_output}
                | ({} if self.ring_probability is None else {"probability": self.ring_probability})
            ),
        }

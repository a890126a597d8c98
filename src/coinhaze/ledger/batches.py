"""What readers of the real world give: rows of a ledger by name, a chunk at a time.

A source lists a coin in one file and of its spending in another, years apart, so rows name each
other by id and height, not by number. Tables not in a batch have no rows in it. `Store` joins them.

Keys: a transaction is known by (height, txid), a coin by (txid, vout), a spending by (height, txid,
vin), a transfer by (height, txid, token, step). The same row may come again; another with the same
key may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from coinhaze.ledger.text import text_hashes

TEXT, NUMBER, FLAG = pa.string(), pa.int64(), pa.bool_()


def _schema(*needed: tuple[str, pa.DataType], **optional: pa.DataType) -> pa.Schema:
    fields = [pa.field(name, kind, nullable=False) for name, kind in needed]
    return pa.schema([*fields, *(pa.field(name, kind) for name, kind in optional.items())])


# Columns that may be null come last. Heights count blocks from 0, times are seconds since 1970,
# values of coins are whole satoshi (zatoshi, ...).
SCHEMAS: dict[str, pa.Schema] = {
    "blocks": _schema(("height", NUMBER), ("hash", TEXT), previous=TEXT, time=NUMBER),
    # `position` is the index in the block, null where the source does not give it.
    "transactions": _schema(
        ("height", NUMBER), ("txid", TEXT), ("coinbase", FLAG), position=NUMBER, time=NUMBER
    ),
    # No value: hidden. No owner: a coin that owns itself. Not spendable: data, or lost for ever.
    "outputs": _schema(
        ("height", NUMBER),
        ("txid", TEXT),
        ("vout", NUMBER),
        ("spendable", FLAG),
        value=NUMBER,
        owner=TEXT,
    ),
    # Value and owner are those of the coin spent, where the source gives them.
    "inputs": _schema(
        ("height", NUMBER),
        ("txid", TEXT),
        ("vin", NUMBER),
        ("spent_txid", TEXT),
        ("spent_vout", NUMBER),
        value=NUMBER,
        owner=TEXT,
    ),
    # Above 0 into the pool, below 0 out of it.
    "pool_flows": _schema(
        ("height", NUMBER), ("txid", TEXT), ("pool", TEXT), ("into_pool", NUMBER)
    ),
    "rings": _schema(
        ("height", NUMBER),
        ("txid", TEXT),
        ("vin", NUMBER),
        ("member_txid", TEXT),
        ("member_vout", NUMBER),
    ),
    # What sources say there should be in the tables above: transactions of a block and the root of
    # their Merkle tree; inputs and outputs of a transaction and what they are worth together.
    "stated_blocks": _schema(("height", NUMBER), transaction_count=NUMBER, merkle_root=TEXT),
    "stated_transactions": _schema(
        ("height", NUMBER),
        ("txid", TEXT),
        input_count=NUMBER,
        output_count=NUMBER,
        input_total=NUMBER,
        output_total=NUMBER,
    ),
    # Amounts are decimal digits, up to 2^256 - 1. `position` is the index of the transaction in its
    # block and `step` the order inside it (log index, place in the trace), or those of the rows of
    # a source that gives neither. Money made or burnt comes from or goes to the zero address.
    # `token` is the contract's address, empty for the chain's own money; `kind` says what moved it:
    # transaction, call, create, selfdestruct, reward, uncle, genesis, withdrawal, fee, token.
    "transfers": _schema(
        ("height", NUMBER),
        ("position", NUMBER),
        ("step", NUMBER),
        ("txid", TEXT),
        ("token", TEXT),
        ("sender", TEXT),
        ("recipient", TEXT),
        ("amount", TEXT),
        ("kind", TEXT),
        time=NUMBER,
    ),
}

KEYS: dict[str, tuple[str, ...]] = {
    "blocks": ("height",),
    "transactions": ("height", "txid"),
    "outputs": ("height", "txid", "vout"),
    "inputs": ("height", "txid", "vin"),
    "pool_flows": ("height", "txid", "pool"),
    "rings": ("height", "txid", "vin", "member_txid", "member_vout"),
    "stated_blocks": ("height",),
    "stated_transactions": ("height", "txid"),
    "transfers": ("height", "txid", "token", "step"),
}

COIN_TABLES = ("transactions", "outputs", "inputs", "pool_flows", "rings")
ACCOUNT_TABLES = ("transfers",)
STATEMENTS = ("stated_blocks", "stated_transactions")  # stores of version 1 have none

Where = Callable[[str, int], str]  # a table and a row of it -> file and line, or block


def somewhere(table: str, row: int) -> str:
    """Say where a row stands if nobody knows better."""
    return f"{table} row {row}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of some tables, each with the columns of `SCHEMAS` in their order.

    `where` says where a row was read, for errors. `read` counts the bytes of the source that this
    and all batches before it took, for progress.
    """

    tables: Mapping[str, pa.Table]
    where: Where = somewhere
    read: int = 0
    notes: tuple[str, ...] = ()  # what users should know of how rows were read
    # What became of the columns of a table: used, unused, unknown -> names as the file has them.
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, table in self.tables.items():
            assert table.schema.equals(SCHEMAS[name]), (name, table.schema)

    @cached_property
    def without_repeats(self) -> frozenset[str]:
        """The tables in which no two rows have one key."""
        tables = self.tables.items()
        return frozenset(name for name, table in tables if are_unique(table, KEYS[name]))


def are_unique(table: pa.Table, keys: Sequence[str]) -> bool:
    """Tell whether no two rows have one key; it may say no where two keys share a hash."""
    key = np.zeros(len(table), dtype=np.uint64)
    for name in keys:
        column = table[name].combine_chunks()
        part = (
            text_hashes(column)
            if pa.types.is_string(column.type)
            else column.to_numpy(zero_copy_only=False).astype(np.uint64)
        )
        # An odd factor keeps all bits; the high ones are brought down for the next round.
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    key.sort()
    return not bool(np.any(key[1:] == key[:-1]))


def table_of(name: str, columns: Mapping[str, object]) -> pa.Table:
    """Make a table of a batch from columns; those left out are null."""
    schema = SCHEMAS[name]
    rows = len(next(iter(columns.values())))  # type: ignore[arg-type]
    given = {f.name: columns.get(f.name, pa.nulls(rows, f.type)) for f in schema}
    return pa.table(given, schema=schema)


class Rows:
    """Rows of one table, gathered one by one in readers that are not columnar."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, list[object]] = {f.name: [] for f in SCHEMAS[name]}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def add(self, **row: object) -> None:
        """Add a row; columns left out are null."""
        for name, column in self.columns.items():
            column.append(row.get(name))

    def table(self) -> pa.Table:
        """Give them as a table of a batch."""
        return pa.table(self.columns, schema=SCHEMAS[self.name])


def in_chunks(batches: Iterable[Batch], *, rows: int = 400_000) -> Iterator[Batch]:
    """Put small batches together, so that a store commits seldom."""
    waiting: list[Batch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += sum(len(t) for t in batch.tables.values())
        if count >= rows:
            yield joined(waiting)
            waiting, count = [], 0
    if waiting:
        yield joined(waiting)


def joined(batches: Sequence[Batch]) -> Batch:
    """Make one batch of several."""
    if len(batches) == 1:
        return batches[0]
    names = [name for name in SCHEMAS if any(name in b.tables for b in batches)]
    tables = {n: pa.concat_tables([b.tables[n] for b in batches if n in b.tables]) for n in names}

    def where(table: str, row: int) -> str:
        for batch in batches:
            rows = len(batch.tables.get(table, ()))
            if row < rows:
                return batch.where(table, row)
            row -= rows
        return somewhere(table, row)

    notes = tuple(note for batch in batches for note in batch.notes)
    columns = next((batch.columns for batch in batches if batch.columns), {})
    return Batch(tables, where, batches[-1].read, notes, columns)


def with_columns(
    batches: Iterable[Batch], columns: Mapping[str, tuple[str, ...]]
) -> Iterator[Batch]:
    """Let the first batch of a file say what became of the columns."""
    rest = iter(batches)
    yield replace(next(rest, Batch({})), columns=columns)
    yield from rest


def gather(rows: Sequence[Rows]) -> dict[str, pa.Table]:
    """Give the tables that have rows."""
    return {r.name: r.table() for r in rows if len(r)}

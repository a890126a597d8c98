"""Transfers in plain columns: who paid whom how much, one a row, in ledger order.

`from`, `to` and `amount` must be there; what else a file may tell, and how it may spell it, is in
`SPELT`. Amounts are whole numbers of the smallest unit: integers, decimals, digits, or 32 bytes
with the highest first; never floating-point numbers, which lose digits.

In a store a transfer is known by transaction and step. They are `txid` and `log_index`, or both in
an `id` such as `txid:3`; else the row in its file is the step, and a file without ids stands for
the transaction. A file without heights is one block of its own, named by the file's digest, so that
a store refuses a second one: nobody could tell which of them came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import NUMBER, TEXT, Batch, table_of
from coinhaze.ledger.readers.arrow_columns import HIGHEST_BLOCK, Columns
from coinhaze.ledger.readers.table_rows import Layout, Piece
from coinhaze.ledger.readers.transfers import times_of

SPELT: dict[str, tuple[str, ...]] = {
    "from": ("from", "sender"),
    "to": ("to", "recipient"),
    "amount": ("amount", "value"),
    "id": ("id",),
    "txid": ("txid",),
    "step": ("log_index", "step"),
    "height": ("height",),
    "position": ("position",),
    "time": ("time",),
    "token": ("token",),
    "kind": ("kind",),
    "fee": ("fee",),
}
NEEDED = ("from", "to", "amount")
NUMBERED_ID = r"^(?P<txid>.+):(?P<step>0|[1-9][0-9]{0,9})$"
_LAST = 2**31 - 1
_EXACT = "store integers, decimals, digits as text, or 32 bytes with the highest first"


@dataclass(frozen=True)
class Told:
    """Which columns tell what, and the layout to read them by."""

    columns: dict[str, str]

    @classmethod
    def by(cls, names: Sequence[str]) -> Told | None:
        """Find out by the names of the columns; nothing if they tell of no transfers."""
        found = {what: [n for n in spelt if n in names] for what, spelt in SPELT.items()}
        told = {what: here[0] for what, here in found.items() if here}
        return cls(told) if all(what in told for what in NEEDED) else None

    def __contains__(self, what: str) -> bool:
        return what in self.columns

    @property
    def layout(self) -> Layout:
        """Say what to read."""
        needed = tuple(self.columns[what] for what in NEEDED)
        others = tuple(name for name in self.columns.values() if name not in needed)
        return Layout("transfers", needed, others)

    def check(self, names: Sequence[str], place: str) -> None:
        """Refuse columns that say one thing twice, or half a thing."""
        for what, spelt in SPELT.items():
            here = [n for n in spelt if n in names]
            if len(here) > 1:
                what = f"columns {first_few(here)} for one thing"
                raise LedgerError(place, what, fix="leave one of them out")
        if "position" in self and "height" not in self:
            raise LedgerError(place, "a position without a height", fix="add the block's height")


class Transfers:
    """Reads the pieces of one source, one after the other, in ledger order."""

    def __init__(self, told: Told, place: str) -> None:
        self.told = told
        self.place = place
        self.numbered: bool | None = None  # whether ids are `txid:number`, as the first ones are
        self.height = -1

    def table(self, piece: Piece) -> pa.Table:
        """Check a piece; columns that are not told are null."""
        columns, told = piece.columns, self.told.columns
        row = pa.array(np.arange(piece.first, piece.first + len(columns)))
        txid, step = self._keys(columns, row)
        return pa.table(
            {
                "sender": columns.names(told["from"]),
                "recipient": columns.names(told["to"]),
                "amount": _amounts(columns, told["amount"]),
                "txid": txid,
                "step": step,
                "id": columns.names(told["id"]) if "id" in told else pa.nulls(len(columns), TEXT),
                "height": self._heights(columns),
                "position": columns.numbers(told["position"], _LAST) if "position" in told else row,
                "time": _times(columns, told.get("time")),
                "token": _words(columns, told.get("token")),
                "kind": _words(columns, told.get("kind")),
                "fee": _amounts(columns, told["fee"]) if "fee" in told else pa.nulls(len(row)),
            }
        )

    def _keys(self, columns: Columns, row: pa.Array) -> tuple[pa.Array, pa.Array]:
        told = self.told.columns
        if "txid" in told and ("step" in told or "id" not in told):
            steps = columns.numbers(told["step"], 2**63 - 1) if "step" in told else row
            return columns.names(told["txid"]), steps
        if "id" not in told:
            return pa.nulls(len(row), TEXT), row
        ids = columns.names(told["id"])
        parted = pc.extract_regex(ids, NUMBERED_ID)
        fits = pc.is_valid(parted)
        if self.numbered is None and len(ids):
            self.numbered = bool(pc.all(fits).as_py())
        if not self.numbered:
            return ids, pa.repeat(pa.scalar(0, NUMBER), len(ids))
        columns.refuse(told["id"], pc.invert(fits), "does not end in a number as those before do")
        return pc.struct_field(parted, "txid"), pc.cast(pc.struct_field(parted, "step"), NUMBER)

    def _heights(self, columns: Columns) -> pa.Array:
        if "height" not in self.told:
            return pa.nulls(len(columns), NUMBER)
        name = self.told.columns["height"]
        heights = columns.numbers(name, HIGHEST_BLOCK)
        if "position" not in self.told and len(heights):
            number = heights.to_numpy()
            falls = pa.array(np.diff(number, prepend=self.height) < 0)
            fix = "sort the file, or add a column `position`"
            columns.refuse(name, falls, "is below that of the row before", fix)
            self.height = int(number[-1])
        return heights


def transfer_batches(
    pieces: Iterable[Piece], told: Told, place: str, digest: Callable[[], str]
) -> Iterator[Batch]:
    """Make batches for a store; `digest` names what the rows are from."""
    reader = Transfers(told, place)
    name = digest() if "height" not in told or not {"txid", "id"} & told.columns.keys() else ""
    for piece in pieces:
        table, columns = reader.table(piece), piece.columns
        if "fee" in told:
            paid = pc.not_equal(table["fee"].combine_chunks(), "0")
            fix = "a store keeps no fees: score the file itself, or leave the column out"
            columns.refuse(told.columns["fee"], paid, "is not 0", fix)
        tables = {"transfers": _stored(table, name[:16])}
        if "height" not in told:
            tables["blocks"] = table_of("blocks", {"height": [0], "hash": [name]})
        yield Batch(tables, lambda _, row, c=columns: c.where(row), piece.read)  # type: ignore[misc]


def _stored(table: pa.Table, name: str) -> pa.Table:
    token = pc.ascii_lower(pc.fill_null(table["token"], ""))
    of_chain = pc.equal(token, "")
    kind = pc.coalesce(table["kind"], pc.if_else(of_chain, "transaction", "token"))
    columns = {c: table[c] for c in ("position", "step", "sender", "recipient", "amount", "time")}
    filled = {"height": pc.fill_null(table["height"], 0), "txid": pc.fill_null(table["txid"], name)}
    return table_of("transfers", columns | filled | {"token": token, "kind": kind})


def account_ledger(sources: Iterable[tuple[Iterable[Piece], Told, str]]) -> AccountLedger:
    """Make a ledger of sources one after the other: pieces, what they tell, and their place."""
    tables, places, first, height = [], [], 0, -1
    ids = times = fees = False
    for pieces, told, place in sources:
        reader = Transfers(told, place)
        reader.height = height
        for piece in pieces:
            tables.append(reader.table(piece))
            places.append((first, piece.columns.where))
            first += len(tables[-1])
        height = reader.height
        ids, times, fees = (
            before or bool(here & told.columns.keys())
            for before, here in ((ids, {"id", "txid"}), (times, {"time"}), (fees, {"fee"}))
        )
    if not tables:
        return AccountLedger.from_transfers([])
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    _check_one_token(table)
    return AccountLedger.from_columns(
        table["sender"],
        table["recipient"],
        table["amount"],
        ids=_ids(table) if ids else None,
        times=table["time"].combine_chunks().cast(pa.timestamp("s", "UTC")) if times else None,
        fees=pc.fill_null(table["fee"], "0") if fees else None,
        place=_place_of(places),
    )


def _ids(table: pa.Table) -> pa.Array:
    """Name transfers as they are, `txid:step`, or by their rows counted from 0."""
    row = pc.cast(pa.array(np.arange(len(table))), TEXT)
    made = pc.binary_join_element_wise(table["txid"], pc.cast(table["step"], TEXT), ":")
    return pc.coalesce(table["id"], made, row)


def _place_of(places: Sequence[tuple[int, Callable[[int], str]]]) -> Callable[[int], str]:
    def place(row: int) -> str:
        first, where = [p for p in places if p[0] <= row][-1]
        return where(row - first)

    return place


def _check_one_token(table: pa.Table) -> None:
    tokens = pc.unique(pc.fill_null(table["token"], "")).to_pylist()
    if len(tokens) > 1:
        shown = first_few(sorted(t or "the chain's own" for t in tokens))
        raise UsageError(f"the files hold {len(tokens)} tokens ({shown}): name one")


def _amounts(columns: Columns, name: str) -> pa.Array:
    kind = columns.plain(name).type
    if pa.types.is_floating(kind):
        what = f"{name} is stored as {kind}, which loses digits"
        raise LedgerError(columns.where(0), what, fix=_EXACT)
    return columns.amounts(name)


def _times(columns: Columns, name: str | None) -> pa.Array:
    if name is None:
        return pa.nulls(len(columns), NUMBER)
    column = columns.plain(name)
    if not pa.types.is_string(column.type):
        return columns.moments(name)
    return times_of(column, columns.where).cast(NUMBER)


def _words(columns: Columns, name: str | None) -> pa.Array:
    return pa.nulls(len(columns), TEXT) if name is None else columns.names(name, optional=True)

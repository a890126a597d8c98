"""The ledger of accounts: transfers in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Amounts, Ints
from coinhaze.errors import LedgerError, UnknownName
from coinhaze.ledger.checks import Place, check_name, check_names, exact_amounts
from coinhaze.ledger.completeness import Completeness
from coinhaze.ledger.frames import ArrowTable, shown
from coinhaze.ledger.frozen import freeze
from coinhaze.units import Unit

ZERO_ADDRESSES = ("0x" + "0" * 40, "0" * 40)
# How accounts of a mixing pool are called where a source gives no addresses for them.
POOL, DEPOSIT, RELAYERS = "pool:", "deposit:", "relayers:"


@dataclass(frozen=True, eq=False)
class AccountLedger(ArrowTable):
    """Transfers between accounts, in the order the ledger has them.

    >>> ledger = AccountLedger.from_transfers([("alice", "bob", 5), ("bob", "carol", 3)])
    >>> len(ledger), ledger.accounts.to_pylist()
    (2, ['alice', 'bob', 'carol'])
    """

    accounts: pa.StringArray
    sender: Ints
    receiver: Ints
    amounts: Amounts
    ids: pa.StringArray | None = None
    times: pa.Array | None = None
    fees: Amounts | None = None
    notes: tuple[str, ...] = ()  # what a reader passed over, put in order or could not determine
    completeness: Completeness = field(default_factory=Completeness)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # used, unused, unknown
    unit: Unit | None = None  # what amounts are counted in, where the source says it

    @classmethod
    def from_transfers(cls, transfers: Iterable[tuple[str, str, int | str]]) -> AccountLedger:
        """Build from (from, to, amount) in ledger order."""
        rows = list(transfers)
        for number, row in enumerate(rows):
            if len(row) != 3:
                raise LedgerError(f"row {number}", "not (from, to, amount)", value=row)
        senders, receivers, amounts = zip(*rows, strict=True) if rows else ((), (), ())
        return cls.from_columns(senders, receivers, amounts)

    @classmethod
    def from_columns(
        cls,
        senders: pa.Array | Sequence[str],
        receivers: pa.Array | Sequence[str],
        amounts: pa.Array | Sequence[object],
        *,
        ids: pa.Array | Sequence[str] | None = None,
        times: pa.Array | None = None,
        fees: pa.Array | Sequence[object] | None = None,
        place: Place | None = None,
    ) -> AccountLedger:
        """Build from columns of equal length; `place` says where a row was read, for errors.

        `ids` name the transfers (`txid:logindex`; else they go by their row number), `fees` are
        what the sender paid beside the amount.
        """
        place = place or "row {}".format
        given = {"to": receivers, "amount": amounts, "id": ids, "time": times, "fee": fees}
        for name, column in given.items():
            if column is not None and len(column) != len(senders):
                raise LedgerError(
                    f"column {name}", "another length than from", value=(len(column), len(senders))
                )
        names = pa.chunked_array(
            [
                _names(senders, place, field="from"),
                _names(receivers, place, field="to"),
            ]
        )
        encoded = names.combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        half = len(codes) // 2
        ledger = cls(
            accounts=encoded.dictionary,
            sender=codes[:half],
            receiver=codes[half:],
            amounts=exact_amounts(amounts, place, field="amount"),
            ids=None if ids is None else _names(ids, place, field="id"),
            times=times,
            fees=None if fees is None else exact_amounts(fees, place, field="fee"),
        )
        return ledger if ids is None else ledger._merge_identical(place)

    def __post_init__(self) -> None:
        freeze(self)

    def _merge_identical(self, place: Place) -> AccountLedger:
        """Keep one of several identical transfers of one id; refuse one id with two contents."""
        assert self.ids is not None
        if pc.count_distinct(self.ids).as_py() == len(self.ids):
            return self
        rows = self.tables()["transfers"].to_pylist()
        first: dict[str, int] = {}
        for number, row in enumerate(rows):
            earlier = first.setdefault(row["id"], number)
            if rows[earlier] != row:
                raise LedgerError(
                    place(number),
                    "the same id with other contents",
                    value=row,
                    fix=f"see {place(earlier)}",
                )
        keep = np.array(sorted(first.values()), dtype=np.int64)
        return replace(
            self,
            sender=self.sender[keep],
            receiver=self.receiver[keep],
            amounts=self.amounts.take(keep),
            ids=self.ids.take(pa.array(keep)),
            times=None if self.times is None else self.times.take(pa.array(keep)),
            fees=None if self.fees is None else self.fees.take(keep),
        )

    def __repr__(self) -> str:
        return f"AccountLedger({len(self)} transfers between {len(self.accounts)} accounts)"

    def _repr_html_(self) -> str:
        return shown("ledger", self)

    def to_arrow(self) -> pa.Table:
        """Give the transfers as a table."""
        return self.tables()["transfers"]

    def __len__(self) -> int:
        return len(self.sender)

    def is_zero_address(self) -> np.typing.NDArray[np.bool_]:
        """Tell which accounts are the zero address, where money is made and burnt."""
        zero = pc.is_in(self.accounts, value_set=pa.array(ZERO_ADDRESSES))
        return np.asarray(zero.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def transfer_ids(self) -> pa.StringArray:
        """Name the transfers: their ids, or their rows counted from 0."""
        if self.ids is not None:
            return self.ids
        return pc.cast(pa.array(np.arange(len(self))), pa.string())

    def payment_rows(self, names: Sequence[str]) -> Ints:
        """Find transfers by id or row number."""
        rows = pc.index_in(pa.array(names, pa.string()), value_set=self.transfer_ids())
        for name, row in zip(names, rows.to_pylist(), strict=True):
            if row is None:
                raise UnknownName(
                    f"no transfer {name!r} in the ledger: name it by its row, counted from 0"
                )
        return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)

    def facts(self) -> dict[str, object]:
        """Count what the ledger holds."""
        zero = self.is_zero_address()
        mints, burns = zero[self.sender], zero[self.receiver]
        moves = (self.sender != self.receiver) & self.amounts.positive()
        first, last = (None, None) if self.times is None else pc.min_max(self.times).values()
        return {
            "kind": "accounts",
            "transfers": len(self),
            "accounts": len(self.accounts),
            "mints": int(np.sum(mints & ~burns)),
            "burns": int(np.sum(burns & ~mints)),
            "moving_nothing": int(np.sum(~moves)),
            "total_moved": sum(self.amounts.take(moves).ints()),
            "first_time": None if first is None else str(first),
            "last_time": None if last is None else str(last),
        }

    def tables(self) -> dict[str, pa.Table]:
        """Give the ledger as Arrow tables, described in the data model."""
        columns = {
            "from": self.accounts.take(pa.array(self.sender)),
            "to": self.accounts.take(pa.array(self.receiver)),
            "amount": self.amounts.to_arrow(),
        }
        if self.ids is not None:
            columns["id"] = self.ids
        if self.times is not None:
            columns["time"] = self.times
        if self.fees is not None:
            columns["fee"] = self.fees.to_arrow()
        return {"transfers": pa.table(columns)}


def spaced_names(accounts: pa.StringArray) -> tuple[str, ...]:
    """Note accounts that differ from another by spaces at the ends of their names alone.

    >>> spaced_names(pa.array(["bob", " bob", "a carol "]))
    ("' bob' and 'bob' are two accounts: take the spaces out of the file if they are one",)
    """
    bare = pc.utf8_trim_whitespace(accounts)
    spaced = pc.not_equal(bare, accounts)
    if not pc.any(spaced).as_py():
        return ()
    both = pc.and_(spaced, pc.is_in(bare, value_set=accounts))
    found = accounts.filter(both)
    if not len(found):
        return ()
    more = f", and {len(found) - 1:,} more pairs like them," if len(found) > 1 else ""
    one = found[0].as_py()
    return (
        f"{one!r} and {one.strip()!r}{more} are two accounts: take the spaces out of the file if "
        "they are one",
    )


def _names(
    column: pa.Array | pa.ChunkedArray | Sequence[str], place: Place, *, field: str
) -> pa.Array:
    """Give a column of names as Arrow text, refusing what is no name."""
    if isinstance(column, pa.ChunkedArray | pa.Array):
        column = column.cast(pa.string())
        return check_names(column, place, field=field)
    for row, name in enumerate(column):
        if name is not None and not isinstance(name, str):
            check_name(name, place(row), field=field)
    return check_names(pa.array(column, pa.string()), place, field=field)

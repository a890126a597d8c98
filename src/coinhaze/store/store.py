"""The store: a ledger in one DuckDB file, put together from batches of any number of sources.

Rows are stored by name, as sources give them (see batches.py), so that users can query them in SQL.
What a batch adds is committed whole or not at all. A row that is there already is not added again;
one that says something else than what is there is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, LedgerError, ResourceError, UsageError, first_few
from coinhaze.formats.registry import is_store
from coinhaze.ledger.batches import (
    ACCOUNT_TABLES,
    COIN_TABLES,
    KEYS,
    SCHEMAS,
    STATEMENTS,
    Batch,
    somewhere,
)
from coinhaze.store.schema import (
    SETTINGS,
    refuse_code,
    refuse_other_tables,
    statements,
    table_names,
)

Find = Callable[[int | None, str], str | None]  # height and id of a transaction -> file and line

VERSION = 2
# What the database may keep; the rows on their way to it take as much again. A scan that reads
# every page once gains nothing from keeping them.
_IN_MEMORY, _ON_DISK, _SCANNING = "1GB", "400MB", "300MB"

# What reading can raise: the database's own errors and, where it hands rows over to Arrow or
# Python, theirs (an unreadable block is an OSError there, a wrong letter a UnicodeDecodeError).
_RAISED = (duckdb.Error, pa.ArrowException, OSError, ValueError, OverflowError, RuntimeError)
_DAMAGE = (
    duckdb.IOException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.SerializationException,
    OSError,
    UnicodeError,
)


@dataclass(frozen=True)
class Source:
    """A file or node a store was fed from: what it was, and whether all of it is in."""

    digest: str
    name: str
    format: str
    rows: int
    done: bool


class Store:
    """One ledger on disk, or in memory if no path is given; a context manager.

    In memory it goes by the name of what it was made of; `find` says for the height and id of a
    transaction where that was read, if it can.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        read_only: bool = False,
        name: str = "store",
        find: Find = lambda height, txid: None,
    ) -> None:
        self.path = path
        self.name = name if path is None else str(path)  # what errors call it
        self.find = find
        self.has_statements = True  # of sources about what there should be; see STATEMENTS
        if path is not None and not _is_text(path):
            raise InputError(f"{path}: the name of a store must be UTF-8: rename it")
        fresh = path is None or not path.exists()
        if fresh and read_only:
            raise InputError(f"{path}: no such store")
        if not fresh and path is not None and not is_store(path):
            raise InputError(f"{path}: not a store; `coinhaze ingest` makes one")
        if path is not None:
            self.connection = self._connect(fresh=fresh, read_only=read_only)

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The database; one in memory is made when it is first used."""
        return self._connect(fresh=True, read_only=False)

    def _connect(self, *, fresh: bool, read_only: bool) -> duckdb.DuckDBPyConnection:
        path = self.path
        with faults(path):
            self.connection = duckdb.connect(
                ":memory:" if path is None else str(path),
                read_only=read_only,
                config=SETTINGS | {"memory_limit": _IN_MEMORY if path is None else _ON_DISK},
            )
        try:
            self._open(fresh=fresh, read_only=read_only)
        except BaseException:
            self.close()
            raise
        return self.connection

    @property
    def is_untouched(self) -> bool:
        """Whether it is in memory, and nothing was written to it or read from it."""
        return "connection" not in self.__dict__

    def _open(self, *, fresh: bool, read_only: bool) -> None:
        self.ask("SET enable_progress_bar = false")
        if not fresh:
            refuse_code(self)
        # Killed before its tables were made, a store is a database with nothing in it: new still.
        if fresh or (not read_only and not table_names(self)):
            self._create()
        else:
            self._check_version(read_only)
            refuse_other_tables(self, without=() if self.has_statements else STATEMENTS)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def place_of(self, height: int | None, txid: str) -> str:
        """Say where a transaction stands: in a file, if it is known in which, or in the store."""
        return f"{self.find(height, txid) or self.name}: transaction {txid}"

    def close(self) -> None:
        """Close the file, breaking off what another thread may still be doing."""
        if self.is_untouched:
            return
        self.connection.interrupt()
        with contextlib.suppress(duckdb.Error):
            self.connection.close()

    def ask(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Give the rows a query finds."""
        with faults(self.path):
            return self.connection.execute(query, list(values)).fetchall()

    def table(self, query: str, values: Sequence[object] = ()) -> pa.Table:
        """Give what a query finds as an Arrow table."""
        with faults(self.path):
            return self.connection.sql(query, params=list(values)).to_arrow_table()

    def stream(
        self, query: str, values: Sequence[object] = (), *, rows: int = 100_000
    ) -> Iterator[pa.RecordBatch]:
        """Give what a query finds some rows at a time; ask nothing else before the last."""
        with faults(self.path):
            yield from self.connection.sql(query, params=list(values)).to_arrow_reader(rows)

    @contextlib.contextmanager
    def scanning(self) -> Iterator[None]:
        """Keep little of the file in memory while its tables are read from end to end."""
        if self.path is None:
            yield
            return
        self.ask(f"SET memory_limit = '{_SCANNING}'")
        try:
            yield
        finally:
            self.ask(f"SET memory_limit = '{_ON_DISK}'")

    def _create(self) -> None:
        with self.transaction():
            for statement in statements():
                self.ask(statement)
            self.ask("INSERT INTO about VALUES ('coinhaze_store', ?)", [str(VERSION)])

    def _check_version(self, read_only: bool) -> None:
        """Refuse unknown versions; version 1 has no statements, and gets their tables."""
        found = []
        if "about" in table_names(self):
            refuse_other_tables(self, {"about"})
            found = self.ask("SELECT value FROM about WHERE key = 'coinhaze_store'")
        if found == [("1",)]:
            refuse_other_tables(self, without=STATEMENTS)
            self.has_statements = not read_only
            if not read_only:
                with self.transaction():
                    for statement in statements(STATEMENTS):
                        self.ask(statement)
                    self.ask("UPDATE about SET value = ?", [str(VERSION)])
        elif found != [(str(VERSION),)]:
            raise InputError(
                f"{self.path}: not a store this coinhaze reads: version "
                f"{found[0][0] if found else 'unknown'}, here {VERSION}"
            )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all that is done inside, or nothing of it."""
        self.ask("BEGIN")
        try:
            yield
            self.ask("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self.connection.execute("ROLLBACK")
            raise

    def sources(self) -> list[Source]:
        """Give what the store was fed from, in order."""
        return [Source(*row) for row in self.ask("SELECT * FROM sources ORDER BY rowid")]

    def note_source(self, source: Source) -> None:
        """Say how far a source is in."""
        self.ask(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?)",
            [source.digest, source.name, source.format, source.rows, source.done],
        )

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of rows: one of version 1 that may not be written to lacks statements."""
        return tuple(n for n in SCHEMAS if self.has_statements or n not in STATEMENTS)

    @property
    def kind(self) -> str | None:
        """Tell what the store holds: coins, accounts, or nothing yet."""
        for kind, tables in (("coins", COIN_TABLES), ("accounts", ACCOUNT_TABLES)):
            if any(self.ask(f"SELECT 1 FROM {t} LIMIT 1") for t in tables):
                return kind
        return None

    @property
    def hides_values(self) -> bool:
        """Tell whether no coin has a value, as in ledgers with rings."""
        return not self.ask("SELECT 1 FROM outputs WHERE value IS NOT NULL LIMIT 1")

    def append(self, batch: Batch) -> int:
        """Add what is new in a batch; give how many rows that are. Belongs in a transaction.

        Statements about rows are no rows of the ledger, and are not counted.
        """
        self._check_kind(batch)
        added = {n: self._append(batch, n) for n, table in batch.tables.items() if len(table)}
        return sum(rows for name, rows in added.items() if name not in STATEMENTS)

    def _check_kind(self, batch: Batch) -> None:
        brings = {"accounts" for t in ACCOUNT_TABLES if t in batch.tables}
        brings |= {"coins" for t in COIN_TABLES if t in batch.tables}
        kind = self.kind
        if kind is not None and brings - {kind}:
            raise UsageError(f"{self.name}: holds {kind}; a store is one ledger: use another file")

    def _append(self, batch: Batch, name: str) -> int:
        keys = KEYS[name]
        columns, using = ", ".join(f.name for f in SCHEMAS[name]), ", ".join(keys)
        self.connection.register("coming", batch.tables[name])
        try:
            fresh = "coming" if name in batch.without_repeats else self._merged(batch, name)
            ((low, high),) = self.ask(f"SELECT min(height), max(height) FROM {fresh}")
            near = f"SELECT * FROM {name} WHERE height BETWEEN {low} AND {high}"
            ((before,),) = self.ask(f"SELECT count(*) FROM ({near})")
            new = fresh
            if before:
                self._compare(batch, name, fresh, near)
                self._fill(name, fresh, (low, high), keys)
                new = f"{fresh} ANTI JOIN ({near}) USING ({using})"
            self.ask(f"INSERT INTO {name} SELECT {columns} FROM {new}")
            ((after,),) = self.ask(f"SELECT count(*) FROM ({near})")
            return int(after - before)
        finally:
            # After a failure the transaction is dead and will be rolled back, these with it.
            with contextlib.suppress(duckdb.Error):
                self.connection.unregister("coming")
                self.connection.execute("DROP TABLE IF EXISTS merged")

    def _merged(self, batch: Batch, name: str) -> str:
        """Make one row of all that state one key, filling nulls; refuse what differs."""
        others = _others(name)
        figures = "".join(f", max({c}) AS {c}" for c in others)
        unlike = " OR ".join(f"min({c}) <> max({c})" for c in others) or "false"
        using = ", ".join(KEYS[name])
        self.ask(
            f"CREATE OR REPLACE TEMP TABLE merged AS SELECT {using}{figures}, "
            f"coalesce({unlike}, false) AS unlike FROM coming GROUP BY {using}"
        )
        query = "SELECT * FROM merged WHERE unlike"
        self._refuse(batch, name, query, "two rows of one key differ")
        return "merged"

    def _compare(self, batch: Batch, name: str, fresh: str, near: str) -> None:
        """Refuse rows that say something else than those that are there."""
        unlike = " OR ".join(f"old.{c} <> fresh.{c}" for c in _others(name)) or "false"
        using = ", ".join(KEYS[name])
        query = (
            f"SELECT {using} FROM {fresh} AS fresh JOIN ({near}) AS old USING ({using}) "
            f"WHERE {unlike}"
        )
        self._refuse(batch, name, query, "another row is in the store already")

    def _fill(self, name: str, fresh: str, heights: tuple[int, int], keys: Sequence[str]) -> None:
        """Fill in what existing rows do not say and new ones do."""
        same = " AND ".join(f"{name}.{k} = fresh.{k}" for k in keys)
        within = f"{name}.height BETWEEN {heights[0]} AND {heights[1]}"
        for column in (f.name for f in SCHEMAS[name] if f.nullable):
            newly_known = f"{name}.{column} IS NULL AND fresh.{column} IS NOT NULL"
            where = f"WHERE {within} AND {newly_known} AND {same}"
            if self.ask(f"SELECT 1 FROM {name} WHERE {within} AND {column} IS NULL LIMIT 1"):
                self.ask(
                    f"UPDATE {name} SET {column} = fresh.{column} FROM {fresh} AS fresh {where}"
                )

    def _refuse(self, batch: Batch, name: str, query: str, what: str) -> None:
        """Refuse the rows a query finds, saying where the first was read and how it differs."""
        keys = KEYS[name]
        found = self.ask(f"SELECT {', '.join(keys)} FROM ({query}) ORDER BY ALL LIMIT 4")
        if not found:
            return
        shown = first_few([" ".join(str(v) for v in row) for row in found])
        first = dict(zip(keys, found[0], strict=True))
        is_key = " AND ".join(f"{key} = ?" for key in keys)
        others = _others(name)
        stated = ", ".join(f"CAST({c} AS VARCHAR)" for c in others)
        rows = [
            row
            for table in (name, "coming")
            for row in self.ask(f"SELECT {stated} FROM {table} WHERE {is_key}", found[0])
        ]
        seen = [list(dict.fromkeys(filter(None, values))) for values in zip(*rows, strict=True)]
        differ = [f"{c} {' and '.join(v)}" for c, v in zip(others, seen, strict=True) if len(v) > 1]
        if name == "blocks" and _has_no_heights(batch):
            what = "a store takes one table without heights, and has one already"
            fix = "nothing tells which came first: ingest this one into another file"
            raise LedgerError(self.name, what, fix=fix)
        earlier = "txid" in first and self.find(first["height"], first["txid"])
        fix = "if the chain was reorganised, ingest from its node; else one source is wrong"
        raise LedgerError(
            f"{_where(batch, name, first) or self.name}: {name}",
            what,
            value=": ".join([shown, *differ[:1]]),
            fix=f"first seen at {earlier}: keep the right one" if earlier else fix,
        )

    def roll_back(self, height: int) -> int:
        """Take out everything from a height on; give the rows taken. Belongs in a transaction."""
        gone = 0
        for name in SCHEMAS:
            ((rows,),) = self.ask(f"SELECT count(*) FROM {name} WHERE height >= ?", [height])
            self.ask(f"DELETE FROM {name} WHERE height >= ?", [height])
            gone += int(rows)
        return gone

    def headers(self, maximum: int = 1000) -> Mapping[int, str]:
        """Give the hashes of the newest blocks by height."""
        rows = self.ask("SELECT height, hash FROM blocks ORDER BY height DESC LIMIT ?", [maximum])
        return dict(rows)

    def digest(self) -> str:
        """Give a digest of all rows, the same in whatever order they came."""
        parts = []
        for name in self.tables:
            if name in STATEMENTS and not self.ask(f"SELECT 1 FROM {name} LIMIT 1"):
                continue  # the digest of a store without statements is that of version 1
            schema = SCHEMAS[name]
            row = ", ".join(f"coalesce(CAST({f.name} AS VARCHAR), '\\N')" for f in schema)
            sums = (
                f"SELECT count(*), coalesce(sum(CAST(md5_number_lower({_joined(row)}) AS HUGEINT)),"
                f" 0), coalesce(sum(CAST(md5_number_upper({_joined(row)}) AS HUGEINT)), 0) "
                f"FROM {name}"
            )
            parts.append(f"{name}:{'/'.join(str(v) for v in self.ask(sums)[0])}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _others(name: str) -> list[str]:
    """Name the columns of a table that are not of its key."""
    return [f.name for f in SCHEMAS[name] if f.name not in KEYS[name]]


def _has_no_heights(batch: Batch) -> bool:
    """Tell whether a batch is of a table without heights, which is block 0 without a time."""
    blocks = batch.tables["blocks"]
    no_times = blocks["time"].null_count == len(blocks)
    return "transfers" in batch.tables and no_times and pc.max(blocks["height"]).as_py() == 0


def _where(batch: Batch, name: str, key: Mapping[str, object]) -> str:
    """Say where the last row of a key was read; nothing if the batch does not say."""
    if batch.where is somewhere:
        return ""
    table = batch.tables[name]
    same = [pc.equal(table[column], value) for column, value in key.items()]
    rows = np.flatnonzero(np.logical_and.reduce([np.asarray(s) for s in same]))
    return batch.where(name, int(rows[-1]))


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _joined(columns: str) -> str:
    return f"concat_ws(chr(31), {columns})"


@contextlib.contextmanager
def faults(path: Path | None) -> Iterator[None]:
    """Turn what a database can raise, and what a damaged one makes of its rows, into our errors."""
    try:
        yield
    except MemoryError as error:
        raise _full(path, error) from None
    except _RAISED as error:
        raise _ours(path, error) from None


def _ours(path: Path | None, error: Exception) -> InputError | ResourceError:
    text = (str(error).splitlines() or [type(error).__name__])[0]
    full = "No space left" in str(error) or ("disk" in text.lower() and "full" in text.lower())
    if full or isinstance(error, (duckdb.OutOfMemoryException, pa.ArrowMemoryError)):
        return _full(path, error)
    if isinstance(error, duckdb.IOException) and "set lock on file" in text:
        return InputError(f"{path}: another process has it open: {text}")
    if isinstance(error, _DAMAGE) or "Corrupt" in text:
        fix = "the file is damaged: restore a copy, or ingest its sources into a new store"
        return InputError(f"{path}: {text}; {fix}")
    return InputError(f"{path}: {text}")


def _full(path: Path | None, error: Exception) -> ResourceError:
    text = (str(error).splitlines() or ["out of memory"])[0]
    return ResourceError(f"{path or 'ledger'}: {text}; the store is as it was at its last commit")

"""A store is data: nothing in it runs, and nothing but its own file is read."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import coinhaze
from coinhaze.errors import InputError
from coinhaze.store.read import read_store
from coinhaze.store.store import Store
from store.made_stores import Chain, transfers


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.duckdb"
    transfers([("0x00", "alice", 9), ("alice", "bob", 4)], path).close()
    return path


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    path = tmp_path / "coins.duckdb"
    chain = Chain()
    chain.block()
    chain.pay("t0", made=[("alice", 9)])
    chain.store(path).close()
    return path


def _change(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as theirs:
        for statement in statements:
            theirs.execute(statement)


def test_a_view_over_a_local_file_never_reaches_the_scores(accounts: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the content of a local file")
    columns = (
        "0::BIGINT AS height, 0::BIGINT AS position, 0::BIGINT AS step, 't' AS txid, "
        "'coin' AS token, content AS sender, 'bob' AS recipient, 5::BIGNUM AS amount, "
        "'token' AS kind, NULL::BIGINT AS time"
    )
    view = f"CREATE VIEW transfers AS SELECT {columns} FROM read_text('{secret}')"
    _change(accounts, "DROP TABLE transfers", view)
    for open_it in (coinhaze.score, coinhaze.read, lambda p: Store(p, read_only=True), Store):
        with pytest.raises(InputError, match=r"a view that coinhaze does not make: 'transfers'"):
            open_it(accounts)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("CREATE VIEW v AS SELECT 1", "a view that coinhaze does not make: 'v'"),
        ("CREATE MACRO md5_number_lower(a) AS 0", "a macro .*'md5_number_lower'"),
        ("CREATE MACRO rows_of(a) AS TABLE SELECT a", "a macro .*'rows_of'"),
        # Names of the functions that list the catalogue.
        ("CREATE MACRO duckdb_views() AS TABLE SELECT 'x' AS view_name", "a macro"),
        ("CREATE MACRO current_database() AS 'other'", "a macro"),
        ("CREATE TYPE colour AS ENUM ('red')", "a type .*'colour'"),
        ("CREATE SEQUENCE counted", "a sequence .*'counted'"),
        (
            "CREATE TRIGGER t AFTER INSERT ON blocks FOR EACH STATEMENT DELETE FROM transfers",
            "a trigger .*'t'",
        ),
        ("CREATE SCHEMA other", "a schema .*'other'"),
        ("CREATE INDEX quick ON transfers (height)", "an index .*'quick'"),
        ("CREATE TABLE more (a BIGINT)", r"a column that coinhaze does not make: 'more\.a'"),
        ("ALTER TABLE transfers ADD COLUMN more BIGINT", r"'transfers\.more'"),
        ("ALTER TABLE transfers ALTER time SET DEFAULT 5", "an expression of its own"),
        ("ALTER TABLE transfers ALTER time TYPE VARCHAR", "VARCHAR instead of BIGINT"),
        ("ALTER TABLE transfers ALTER amount TYPE VARCHAR", "VARCHAR NOT NULL instead of BIGNUM"),
        ("ALTER TABLE transfers DROP COLUMN time", r"a column is missing: 'transfers\.time'"),
        ("ALTER TABLE transfers ALTER sender DROP NOT NULL", "VARCHAR instead of VARCHAR NOT NULL"),
        ("DROP TABLE transfers", r"a column is missing: 'transfers\.height'"),
        ("DROP TABLE about", "version unknown"),
        ("UPDATE about SET value = '99'", "version 99, here"),
    ],
)
def test_whatever_coinhaze_does_not_make_is_refused(
    accounts: Path, statement: str, says: str
) -> None:
    _change(accounts, statement)
    for read_only in (True, False):
        with pytest.raises(InputError, match=rf"not a store this coinhaze reads: .*{says}"):
            Store(accounts, read_only=read_only)


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("hash VARCHAR COLLATE NOCASE NOT NULL", "an order of letters"),
        ("hash VARCHAR GENERATED ALWAYS AS (previous)", "an expression of its own"),
        ("hash VARCHAR NOT NULL CHECK (length(hash) > 0)", "a constraint of its own"),
        ("hash VARCHAR NOT NULL UNIQUE", "a constraint of its own"),
        ("hash VARCHAR NOT NULL DEFAULT getvariable('x')", "an expression of its own"),
    ],
)
def test_columns_that_compute_are_refused(coins: Path, definition: str, says: str) -> None:
    with duckdb.connect(str(coins)) as theirs:
        ((made,),) = theirs.execute(
            "SELECT sql FROM duckdb_tables() WHERE table_name = 'blocks'"
        ).fetchall()
        own = next(c.strip() for c in made.split("(", 1)[1].split(",") if c.strip()[:4] == "hash")
        theirs.execute("DROP TABLE blocks")
        theirs.execute(made.replace(own, definition))
    with pytest.raises(InputError, match=says):
        Store(coins, read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_the_database_reaches_nothing_but_its_own_file(
    accounts: Path, tmp_path: Path, read_only: bool
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    with Store(accounts, read_only=read_only) as store:
        for query in (
            f"SELECT * FROM read_text('{other}')",
            f"SELECT * FROM '{other}'",
            f"SELECT * FROM glob('{tmp_path}/*')",
            f"COPY transfers TO '{tmp_path}/copied.csv'",
            f"ATTACH '{tmp_path}/new.duckdb'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            "SET autoload_known_extensions = true",
            "SET threads = 1",
        ):
            with pytest.raises(InputError):
                store.ask(query)
        local = 5  # noqa: F841 - a variable of ours is no table
        with pytest.raises(InputError, match="does not exist"):
            store.ask("SELECT * FROM local")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["accounts.duckdb", "other.csv"]


def test_stores_work_under_any_name_and_while_scanning(tmp_path: Path) -> None:
    for name in ("system.duckdb", "temp", "main.duckdb", 'it\'s a "store"', "transfers"):
        path = tmp_path / name
        transfers([("0x00", "alice", 9), ("alice", "bob", 4)], path).close()
        with Store(path, read_only=True) as store, store.scanning():
            assert len(read_store(store)) == 2

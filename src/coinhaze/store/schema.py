"""What a store may contain: the tables written here and nothing that computes.

A store comes from anybody. A view, a macro, a default or a generated column is somebody else's code
that would run when rows are read, so the catalogue is compared with the tables of `SCHEMAS` before
any of them is read. The database itself can reach no file but the store's own, and loads no
extension.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coinhaze.errors import InputError, first_few, shorten
from coinhaze.ledger.batches import SCHEMAS

if TYPE_CHECKING:
    from coinhaze.store.store import Store

_TYPES = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN"}
# Sums of 2^256 - 1 are exact in BIGNUM; text would sort by letters.
_EXACT = {("transfers", "amount"): "BIGNUM"}

# Packing hashes takes a third of the time of an ingest.
_RANDOM = ("txid", "spent_txid", "hash", "previous", "merkle_root")

_TEXT, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.bool_()
# Tables about the store itself; the first column is the key.
_OWN = {
    "about": pa.schema([pa.field(name, _TEXT, nullable=False) for name in ("key", "value")]),
    "sources": pa.schema(
        [
            pa.field(name, kind, nullable=False)
            for name, kind in (
                ("digest", _TEXT),
                ("name", _TEXT),
                ("format", _TEXT),
                ("rows", _NUMBER),
                ("done", _FLAG),
            )
        ]
    ),
}

# Commits go to a log first; it is worked into the file seldom, and when that is closed.
SETTINGS: dict[str, Any] = {
    "wal_autocheckpoint": "256MB",
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "allowed_configs": "['memory_limit', 'enable_progress_bar']",
    "lock_configuration": True,
}


def statements(tables: Collection[str] = (*_OWN, *SCHEMAS)) -> list[str]:
    """Give the SQL that makes the tables of a store, or some of them."""
    return [
        f"CREATE TABLE {table} ({', '.join(_definition(table, field) for field in schema)})"
        for table, schema in (_OWN | SCHEMAS).items()
        if table in tables
    ]


def _definition(table: str, field: pa.Field) -> str:
    words = [field.name, _type(table, field)]
    if field.name in _RANDOM:
        words.append("USING COMPRESSION uncompressed")
    if not field.nullable:
        words.append("NOT NULL")
    if table in _OWN and field.name == _OWN[table].names[0]:
        words.append("PRIMARY KEY")
    return " ".join(words)


def _type(table: str, field: pa.Field) -> str:
    return _EXACT.get((table, field.name), _TYPES[field.type])


def refuse_code(store: Store) -> None:
    """Refuse a store with anything in it but tables."""
    for what, function, name in (
        ("a view", "views", "view_name"),
        ("a macro", "functions", "function_name"),
        ("a trigger", "triggers", "trigger_name"),
        ("a sequence", "sequences", "sequence_name"),
        ("a type", "types", "type_name"),
        ("a schema", "schemas", "schema_name"),
        ("an index", "indexes", "index_name"),
        ("a database", "databases", "database_name"),
    ):
        found = {str(entry) for (entry,) in _listed(store, function, name)} - _usual(store, what)
        if found:
            _refuse(store, f"{what} that coinhaze does not make", sorted(found))


def _usual(store: Store, what: str) -> set[str]:
    """Give the names of what every database has."""
    if what == "a type":
        query = "SELECT type_name FROM system.main.duckdb_types() WHERE database_name = 'system'"
        return {name for (name,) in store.ask(query)}
    if what == "a database":
        return {_name(store)}
    return {"main"} if what == "a schema" else set()


def refuse_other_tables(
    store: Store, tables: set[str] | None = None, *, without: Collection[str] = ()
) -> None:
    """Refuse tables and columns that are not as coinhaze makes them; of all tables, or of some.

    Those `without` which the store was made are refused too.
    """
    expected = {
        (table, field.name): (_type(table, field), field.nullable)
        for table, schema in (_OWN | SCHEMAS).items()
        for field in schema
        if table not in without
    }
    found: dict[tuple[str, str], tuple[str, bool]] = {}
    wanted = "table_name, column_name, data_type, is_nullable, column_default, is_generated"
    for table, column, kind, nullable, default, generated in _listed(store, "columns", wanted):
        if tables is not None and table not in tables:
            continue
        if default is not None or generated:
            _refuse(store, "a column with an expression of its own", [f"{table}.{column}"])
        if (table, column) not in expected:
            _refuse(store, "a column that coinhaze does not make", [f"{table}.{column}"])
        found[table, column] = kind, nullable
    for (table, column), is_as in expected.items():
        if tables is not None and table not in tables:
            continue
        if (table, column) not in found:
            _refuse(store, "a column is missing", [f"{table}.{column}"])
        if found[table, column] != is_as:
            words = [f"{k}{'' if n else ' NOT NULL'}" for k, n in (found[table, column], is_as)]
            _refuse(store, f"a column is {words[0]} instead of {words[1]}", [f"{table}.{column}"])
    for table, kind in _listed(store, "constraints", "table_name, constraint_type"):
        if kind not in ("NOT NULL", "PRIMARY KEY"):
            _refuse(store, f"a table with a constraint of its own ({kind})", [table])
    for table, text in _listed(store, "tables", "table_name, sql"):
        # With types, defaults and constraints as expected, only this is left that changes answers.
        if " COLLATE " in text.upper():
            _refuse(store, "a table with an order of letters of its own", [table])


def table_names(store: Store) -> set[str]:
    """Give the names of all tables."""
    return {str(name) for (name,) in _listed(store, "tables", "table_name")}


def _listed(store: Store, function: str, columns: str) -> list[tuple[Any, ...]]:
    """List entries of the store's catalogue.

    Functions are named in full and nothing else is called: a store may define others of their
    name. What entries say of themselves (that they are internal) is not believed.
    """
    return store.ask(
        f"SELECT {columns} FROM system.main.duckdb_{function}() "
        "WHERE database_name <> 'system' AND database_name <> 'temp'"
    )


def _name(store: Store) -> str:
    ((name,),) = store.ask("SELECT system.main.current_database()")
    return str(name)


def _refuse(store: Store, what: str, names: list[str]) -> None:
    raise InputError(
        f"{store.path}: not a store this coinhaze reads: {what}: "
        f"{first_few([shorten(name) for name in names])}; nothing in it was read: ingest its "
        "sources into a store of your own"
    )

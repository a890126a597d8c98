"""The formats of files: one entry each, in the order in which files are compared with them.

A further format is one more entry, from wherever it is written:

    register(Format("my-format", "Mine", "rows of mine, in CSV", recognises, batches))

From then on it is recognised, read by `coinhaze.read` and `coinhaze ingest`, and named in the help.
Entries are light: the modules that read a format are imported when a file is to be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coinhaze.errors import InputError, UsageError, first_few
from coinhaze.units import Unit, unit_named

if TYPE_CHECKING:
    from coinhaze.formats.transfers.columns import ColumnChoice
    from coinhaze.ledger import Ledger
    from coinhaze.ledger.batches import Batch

HEAD = 1 << 16  # bytes by which a file is recognised
DUCKDB = b"DUCK"  # at byte 8
# Of the columns that a table of a format must have: those that are there, and those that are not.
ColumnsPresent = tuple[list[str], list[str]]
FOLDER = "folder"  # a ledger's own folder of Parquet files, which is a whole ledger


@dataclass(frozen=True, eq=False)
class Format:
    """One format: how it is called, recognised and read.

    `recognises` decides by the first bytes of a file, unpacked; `recognises_columns` by the names
    of the columns of a Parquet file. `batches` reads a file as rows for a store. `ledger` reads
    files without a store in between; it gives None if it cannot read these. `needs` names the
    columns that a table of the format must have, for each of its tables.
    """

    name: str
    label: str
    description: str
    recognises: Callable[[bytes], bool]
    batches: Callable[..., Iterator[Batch]]
    recognises_columns: Callable[[Sequence[str]], bool] | None = None
    ledger: Callable[..., Ledger | None] | None = None
    needs: Callable[[Sequence[str]], Sequence[ColumnsPresent]] | None = None
    whole_blocks: bool = False  # it lists every transaction of the blocks it describes, if any
    money: str = ""  # the symbol of the chain's own money, where the format tells it
    takes_choice: bool = False  # `batches` and `ledger` take columns and decimals that users give
    is_snapshot: bool = False  # of coins: no rows, but values of coins that other files spend


def _builtin(
    name: str,
    label: str,
    description: str,
    module: str,
    *further: str,
    whole_blocks: bool = False,
    money: str = "",
    takes_choice: bool = False,
    is_snapshot: bool = False,
) -> Format:
    """Make the entry of a module of this package; `further` are the optional functions it has."""

    def function(attribute: str) -> Callable[..., Any]:
        def call(*given: Any, **settings: Any) -> Any:
            return getattr(import_module(f"coinhaze.formats.{module}"), attribute)(
                *given, **settings
            )

        return call

    return Format(
        name,
        label,
        description,
        function("recognises"),
        function("batches"),
        **{attribute: function(attribute) for attribute in further},
        whole_blocks=whole_blocks,
        money=money,
        takes_choice=takes_choice,
        is_snapshot=is_snapshot,
    )


_formats: dict[str, Format] = {}
# Coins of others are recognised by their addresses.
_MONEY_OF_NODES = {"ethereum": "ETH"}


def register(format: Format) -> None:
    """Add a format; files are compared with it after those that are registered already."""
    if format.name in _formats or format.name == FOLDER:
        raise UsageError(f"a format {format.name!r} is registered already")
    _formats[format.name] = format


def unregister(name: str) -> None:
    """Remove a format."""
    del _formats[format_named(name).name]


def formats() -> Mapping[str, Format]:
    """Give all formats by name, in the order in which files are compared with them."""
    return dict(_formats)


def format_named(name: str) -> Format:
    """Give the format of a name."""
    if name not in _formats:
        raise UsageError(f"unknown format {name!r}: one of {', '.join([*_formats, FOLDER])}")
    return _formats[name]


def lists_whole_blocks(name: str) -> bool:
    """Tell whether sources of a format list every transaction of their blocks, as nodes do."""
    return name == "node" or (name in _formats and _formats[name].whole_blocks)


def money_of(names: Sequence[str]) -> Unit | None:
    """Give the unit of a chain's own money if all these formats, or kinds of nodes, tell the same.

    >>> money_of(["ethereum-etl", "mev-inspect"]).symbol, money_of(["plain"])
    ('ETH', None)
    """
    symbols = {_formats[n].money if n in _formats else _MONEY_OF_NODES.get(n, "") for n in names}
    symbol = symbols.pop() if len(symbols) == 1 else ""
    return unit_named(symbol) if symbol else None


def format_names() -> tuple[str, ...]:
    """Name the formats that can be chosen."""
    return (*_formats, FOLDER)


for _entry in (
    _builtin(
        "dune", "Dune", "exports of Dune: tokens.transfers, events of contracts (CSV)",
        "transfers.dune", "recognises_columns", "ledger", takes_choice=True,
    ),
    _builtin(
        "etherscan", "Etherscan", "exports of Etherscan: transactions, internal ones, tokens (CSV)",
        "transfers.etherscan", "ledger", takes_choice=True,
    ),
    _builtin(
        "blockchair", "Blockchair", "daily dumps of Bitcoin and its relatives (TSV)",
        "blockchair.bitcoin", "needs", whole_blocks=True,
    ),
    _builtin(
        "blockchair-ethereum", "Blockchair, Ethereum", "daily dumps of Ethereum (TSV)",
        "blockchair.ethereum", "needs", money="ETH",
    ),
    _builtin(
        "transfers", "Transfers", "who paid whom how much, in CSV, Parquet or Arrow",
        "transfers.files", "recognises_columns", "ledger", "needs", takes_choice=True,
    ),
    _builtin(
        "ethereum-etl", "ethereum-etl", "tables of ethereum-etl, BigQuery and AWS",
        "ethereum.etl", "recognises_columns", "needs", money="ETH",
    ),
    _builtin(
        "cryo", "cryo", "datasets erc20_transfers, native_transfers and traces of cryo (Parquet)",
        "ethereum.cryo", "recognises_columns", "needs", takes_choice=True,
    ),
    _builtin(
        "mev-inspect", "mev-inspect", "blocks with receipts and traces (JSON)",
        "ethereum.mev_inspect", money="ETH",
    ),
    _builtin(
        "bitcoin-etl", "bitcoin-etl", "transactions of bitcoin-etl, BigQuery and AWS",
        "bitcoin_etl.batches", "recognises_columns", whole_blocks=True,
    ),
    _builtin(
        "bitcoin-json", "getblock", "blocks as a Bitcoin node gives them (JSON)",
        "json.bitcoin", whole_blocks=True,
    ),
    _builtin(
        "esplora", "Esplora", "transactions as Esplora and mempool.space give them (JSON)",
        "json.esplora",
    ),
    _builtin(
        "utxo-edges", "UTXO edges", "vertices and edges of a transaction graph (CSV)",
        "tabular.utxo_edges", "needs",
    ),
    _builtin(
        "dumplings", "Dumplings", "CoinJoins as the scanner Dumplings lists them",
        "json.dumplings", money="BTC",
    ),
    _builtin(
        "tornado", "Tornado Cash", "deposits and withdrawals of one pool (JSON)",
        "ethereum.tornado",
    ),
    _builtin(
        "bitcoin-blocks", "Bitcoin's blocks", "raw blocks of a Bitcoin node, blk*.dat",
        "bitcoin_raw.blocks", whole_blocks=True,
    ),
    _builtin(
        "utxo-snapshot", "UTXO snapshot", "coins after one block, from dumptxoutset, beside blocks",
        "bitcoin_raw.snapshot", whole_blocks=True, is_snapshot=True,
    ),
    _builtin(
        "zcash-blocks", "Zcash's blocks", "raw blocks of Zcash, binary or hexadecimal",
        "zcash_raw.blocks", whole_blocks=True,
    ),
    _builtin(
        "rusty-blockparser", "rusty-blockparser", "blocks as csvdump writes them: four files (CSV)",
        "tabular.rusty_blockparser", whole_blocks=True,
    ),
    _builtin(
        "plain", "Plain columns", "the store's own tables, in CSV, Parquet or Arrow",
        "tabular.plain", "recognises_columns", "needs",
    ),
):  # fmt: skip
    register(_entry)


def format_of(path: Path) -> str:
    """Name the format of a file by what it begins with."""
    return recognise(path, head_of(path)).name


def recognise(path: Path, head: bytes) -> Format:
    """Give the format of a file that begins with these bytes, unpacked."""
    names: list[str] | None = None
    if head.startswith(b"PAR1"):
        names = _parquet_columns(path)
        known = (
            entry
            for entry in _formats.values()
            if entry.recognises_columns is not None and entry.recognises_columns(names)
        )
    else:
        from coinhaze.formats.compression import BOM

        start = head.removeprefix(BOM)
        known = (entry for entry in _formats.values() if entry.recognises(start))
    found = next(known, None)
    if found is None:
        from coinhaze.formats.unknown import unknown_file

        raise unknown_file(path, head, names, _formats.values())
    return found


def not_for(choice: ColumnChoice, name: str, paths: Sequence[Path], *, forced: bool) -> UsageError:
    """Say why a format takes no columns and decimals; `forced` is one that the user named."""
    given = choice.given
    if not forced:
        files = first_few([str(path) for path in paths])
        smallest = "whose amounts are in the smallest unit"
        own = "from=from_address,to=to_address,amount=value"
        return UsageError(
            f"{files}: {given} cannot be used with {name}, {smallest}: leave it out; or, for a "
            f"table of your own with such columns: --columns {own}"
        )
    try:
        seen = {recognise(path, head_of(path)) for path in paths}
    except InputError:
        seen = set()
    what = f"{given} cannot be used with --format {name}"
    if seen and all(entry.takes_choice for entry in seen):
        like = first_few(sorted(entry.name for entry in seen))
        return UsageError(f"{what}; by its columns this is {like}: leave out --format")
    return UsageError(
        f"{what}: leave out --format for a table of your own, and {given} for a file of {name}"
    )


def _parquet_columns(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from coinhaze.formats.compression import packing

    if packing(path):
        raise InputError(f"{path}: Parquet inside of packing: unpack it first")
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None


def head_of(path: Path) -> bytes:
    """Give what a file begins with, unpacked."""
    from coinhaze.formats.compression import errors_of_reading, open_plain

    if path.is_dir():
        raise InputError(f"{path}: is a folder; name the files in it")
    with errors_of_reading(path), open_plain(path) as file:
        return bytes(file.read(HEAD))


def looks_stored(head: bytes) -> bool:
    """Tell whether a file that begins so is a DuckDB database."""
    return head[8:12] == DUCKDB


def is_store(path: Path) -> bool:
    """Tell whether a file is a DuckDB database."""
    try:
        with open(path, "rb") as file:
            return looks_stored(file.read(12))
    except OSError:
        return False


def digest_of(path: Path) -> str:
    """Give the SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None

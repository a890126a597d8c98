"""Raw blocks and the coins they spend, as returned by a node's REST interface -> tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.contents import HEADER, block_batch, read_block
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256, id_text
from coinhaze.nodes.best_chain import RawBlock

MAX_MONEY = 21_000_000 * 10**8
SMALLEST = 9  # bytes of a coin: its value and an empty script

# Networks whose addresses can be written as the node does.
NETWORKS = {n.name: n for n in BITCOIN_MAGICS.values() if n.name.split()[0] == "bitcoin" and n.hrp}

Coin = tuple[int, bytes]  # value and script


def raw_tables(blocks: Sequence[RawBlock], network: Network, node: str) -> dict[str, pa.Table]:
    """Return the tables of a batch, with values and owners of coins spent."""
    for block in blocks:
        if id_text(double_sha256(block.body[:HEADER])) != block.hash or len(block.body) < HEADER:
            where = f"{node}: block {block.height}"
            raise LedgerError(where, "the bytes are not those of block", value=block.hash)
    tables = _tables_without_spent(blocks, network, node)
    spent = [spent_coins(block.spent, f"{node}: block {block.height}") for block in blocks]
    _check_counts(blocks, spent, tables, node)
    if "inputs" not in tables:
        return tables
    coins = [coin for block in spent for some in block for coin in some]
    owners, _ = owners_of([script for _, script in coins], network)
    columns = {"value": pa.array([value for value, _ in coins], pa.int64()), "owner": owners}
    inputs = tables["inputs"]
    filled = [columns.get(field.name, inputs[field.name]) for field in inputs.schema]
    return tables | {"inputs": pa.table(filled, schema=inputs.schema)}


def spent_coins(octets: bytes, where: str) -> list[list[Coin]]:
    """Read value and script of the coins spent, by transaction; the coinbase has none.

    >>> spent_coins(bytes([1, 0]), "block 0")
    [[]]
    """
    cursor = Cursor(octets)
    try:
        found = [
            [_coin(cursor) for _ in range(cursor.count(SMALLEST))] for _ in range(cursor.count(1))
        ]
    except Malformed as error:
        raise LedgerError(where, f"coins spent that cannot be read: {error}") from None
    if cursor.at != len(octets):
        raise LedgerError(where, "bytes left over after the coins spent", value=octets[cursor.at :])
    return found


def _coin(cursor: Cursor) -> Coin:
    value = cursor.signed(8)
    if not 0 <= value <= MAX_MONEY:
        raise Malformed(f"a value that is no amount of bitcoin: {value}")
    return value, cursor.text()


def _check_counts(
    blocks: Sequence[RawBlock],
    spent: Sequence[list[list[Coin]]],
    tables: Mapping[str, pa.Table],
    node: str,
) -> None:
    """Check the coins spent against the inputs, transaction by transaction."""
    inputs: dict[tuple[int, str], int] = {}
    if "inputs" in tables:
        of = tables["inputs"]
        inputs = Counter(zip(of["height"].to_pylist(), of["txid"].to_pylist(), strict=True))
    of = tables["transactions"]
    wanted: dict[int, list[int]] = {block.height: [] for block in blocks}
    for height, txid in zip(of["height"].to_pylist(), of["txid"].to_pylist(), strict=True):
        wanted[height].append(inputs.get((height, txid), 0))
    for block, found in zip(blocks, spent, strict=True):
        if [len(coins) for coins in found] != wanted[block.height]:
            where = f"{node}: block {block.height}"
            raise LedgerError(where, "other numbers of coins spent than inputs", value=block.hash)


def _tables_without_spent(
    blocks: Sequence[RawBlock], network: Network, node: str
) -> dict[str, pa.Table]:
    raw = [
        read_block(b.height, bytes.fromhex(b.hash)[::-1], b.body, network=network, source=node)
        for b in blocks
    ]
    return dict(block_batch(raw, network=network, source=node).tables)

"""A node of Bitcoin or of a chain with its rules (Core, Knots, Litecoin) as a source of batches.

Blocks are read in the first of three ways that the node offers:

- REST, `-rest`: raw blocks and the coins they spend (Bitcoin Core from 30, Knots from 29)
- `getblock` with verbosity 3: JSON with the coins spent (from Bitcoin Core 23)
- `getblock` with verbosity 2: JSON without them, so values and owners of coins spent are null
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError, SourceUnreachable
from coinhaze.formats.bitcoin_raw.contents import HEADER, block_batch, read_block
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256, id_text
from coinhaze.formats.json.bitcoin import block_tables
from coinhaze.ledger.batches import Batch, Where
from coinhaze.nodes.best_chain import (
    ChainChanged,
    ChainNode,
    MissingUndo,
    RawBlock,
    WrongNetwork,
    check_follows,
)
from coinhaze.nodes.http import StatusError
from coinhaze.nodes.mweb import Holder, Pegs, holder_after, read_pegs, without_pegs
from coinhaze.nodes.rpc import JsonRpc, RpcError

REST, PREVOUTS, PLAIN = "rest", "getblock 3", "getblock 2"
# Networks whose key addresses can be written as the readers of raw blocks do.
KEYS = {network.name: network for network in BITCOIN_MAGICS.values()}
WITH_PREVOUTS = 230_000  # the first version of Bitcoin Core that includes the coins spent

MAX_MONEY = 21_000_000 * 10**8
SMALLEST = 9  # bytes of a coin: its value and an empty script
# Networks whose addresses can be written as the node does.
NETWORKS = {n.name: n for n in BITCOIN_MAGICS.values() if n.name.split()[0] == "bitcoin" and n.hrp}
Coin = tuple[int, bytes]  # value and script


class _NetworkInfo(msgspec.Struct):
    version: int
    subversion: str = ""


class _Header(msgspec.Struct):
    hash: str
    height: int
    previousblockhash: str | None = None
    confirmations: int = 1
    mweb: msgspec.Raw = msgspec.Raw()


_header = msgspec.json.Decoder(_Header)


class BitcoinNode(ChainNode):
    """A node; `network` names the network it must belong to, such as "bitcoin" or "litecoin".

    `way` forces one of the ways to read blocks.
    """

    def __init__(self, rpc: JsonRpc, *, network: str | None = None, way: str | None = None) -> None:
        super().__init__(rpc, network=network)
        if self.network.startswith("zcash"):
            raise WrongNetwork(f"{rpc.node}: a node of Zcash: read it as one, for its pools")
        self.way = way or self._best_way()

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        """Read a range of blocks in order, both ends included; the first follows block `before`.

        If the chain is reorganised meanwhile, ChainChanged is raised: read on from the common
        ancestor.
        """
        request = self._request_rest if self.way == REST else self._request_json
        tables_of = self._raw_tables if self.way == REST else self._json_tables
        holder = Holder()
        for some, read in self.chunks(request, first, last):
            tables, holder = tables_of(some, holder)
            before = self._check_links(tables["blocks"], some, before)
            yield Batch(tables, self._where(tables), read)

    def _best_way(self) -> str:
        _, tip = self.tip()  # the one block that is never pruned
        if self.network in NETWORKS and self._has_rest(tip):
            return REST
        info = self.decode(self.rpc.call("getnetworkinfo"), _NetworkInfo, "getnetworkinfo")
        core = self.network in NETWORKS and info.subversion.startswith("/Satoshi:")
        if core and info.version >= WITH_PREVOUTS:
            return PREVOUTS
        # Other nodes treat 3 as 2, or reject it.
        try:
            return PREVOUTS if b'"prevout"' in self.rpc.call("getblock", tip, 3) else PLAIN
        except RpcError:
            return PLAIN

    def _has_rest(self, name: str) -> bool:
        try:
            self.rpc.get(f"/rest/spenttxouts/{name}.bin")
        except StatusError:
            return False
        return True

    def _request_rest(self, heights: range) -> list[RawBlock]:
        blocks = []
        for height, name in zip(heights, self.hashes_at(heights), strict=True):
            body = self._rest("block", height, name)
            blocks.append(RawBlock(height, name, body, self._rest("spenttxouts", height, name)))
        return blocks

    def _rest(self, what: str, height: int, name: str) -> bytes:
        try:
            return self.rpc.get(f"/rest/{what}/{name}.bin")
        except StatusError as error:
            if error.status == 404:
                raise self._gone(what, height, error.text) from None
            raise

    def _request_json(self, heights: range) -> list[RawBlock]:
        try:
            return self.getblocks(heights, 3 if self.way == PREVOUTS else 2)
        except RpcError as error:
            text = error.message.lower()
            if "undo data" in text:
                raise self._gone("spenttxouts", heights[0], error.message) from None
            if "pruned" in text or "not available" in text:
                raise self._gone("block", heights[0], error.message) from None
            raise

    def _gone(self, what: str, height: int, said: str) -> SourceUnreachable:
        """Return the error that says why a block, or what it spent, is unavailable."""
        if what == "spenttxouts":
            return MissingUndo(
                f"{self.rpc.node}: the coins spent by block {height} are not known to the node "
                f"({said}): -reindex brings its undo data back, or read its blk*.dat files without"
            )
        return self.pruned(height, said)

    def _raw_tables(
        self, blocks: Sequence[RawBlock], holder: Holder
    ) -> tuple[dict[str, pa.Table], Holder]:
        return raw_tables(blocks, NETWORKS[self.network], self.rpc.node), holder

    def _json_tables(
        self, blocks: Sequence[RawBlock], holder: Holder
    ) -> tuple[dict[str, pa.Table], Holder]:
        def place(number: int) -> str:
            return f"{self.rpc.node}: block {blocks[number].height}"

        headers = [self._checked_header(block) for block in blocks]
        bodies = [block.body for block in blocks]
        tables = block_tables(bodies, place, network=KEYS.get(self.network))
        self._check_undo(tables)
        pegs: dict[int, Pegs] = {}
        for number, header in enumerate(headers):
            if bytes(header.mweb) in (b"", b"null"):
                continue
            if holder.coin is None and number == 0 and header.previousblockhash:
                earlier = self.rpc.call("getblock", header.previousblockhash, 2)
                holder = holder_after(earlier, f"{self.rpc.node}: block {header.height - 1}")
            pegs[header.height], holder = read_pegs(blocks[number].body, holder, place(number))
        return (without_pegs(tables, pegs) if pegs else tables), holder

    def _checked_header(self, block: RawBlock) -> _Header:
        where = f"{self.rpc.node}: block {block.height}"
        try:
            header = _header.decode(block.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceUnreachable(f"{where}: an unknown answer to getblock: {error}") from None
        if header.confirmations < 0:
            raise ChainChanged(where, "left the best chain while it was read", value=block.hash)
        if (header.height, header.hash.lower()) != (block.height, block.hash):
            raise SourceUnreachable(f"{where}: the node gave another block: {header.hash[:64]!r}")
        return header

    def _check_undo(self, tables: Mapping[str, pa.Table]) -> None:
        inputs = tables.get("inputs")
        if self.way == PREVOUTS and inputs is not None and inputs["value"].null_count:
            row = inputs["value"].is_null().index(True).as_py()
            raise self._gone("spenttxouts", inputs["height"][row].as_py(), "no prevout")

    def _check_links(self, table: pa.Table, blocks: Sequence[RawBlock], before: str) -> str:
        """Raise ChainChanged unless each block follows the one before; return the last hash."""
        for block, name, previous in zip(
            blocks, table["hash"].to_pylist(), table["previous"].to_pylist(), strict=True
        ):
            where = f"{self.rpc.node}: block {block.height}"
            if name != block.hash:
                raise SourceUnreachable(f"{where}: the node gave another block: {name}")
            check_follows(previous, before, where)
            before = name
        return before

    def _where(self, tables: Mapping[str, pa.Table]) -> Where:
        return lambda table, row: f"{self.rpc.node}: block {tables[table]['height'][row].as_py()}"


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

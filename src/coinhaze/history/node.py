"""Blocks of a node for a history: read raw, checked against their headers, and followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from coinhaze.errors import InputError, LedgerError, SourceUnreachable
from coinhaze.formats.bitcoin_raw.contents import HEADER, BlockBytes, coin_blocks, read_block
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.wire import double_sha256, id_text
from coinhaze.history.files import Manifest
from coinhaze.history.follow import BlockFigures, CoinFigures, DeepReorganisation, Follower, last_id
from coinhaze.history.index.sources import BlockSource, following, raw_checks
from coinhaze.history.journal import NamedBlock
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.nodes.best_chain import ChainChanged, ChainNode, RawBlock
from coinhaze.nodes.http import ResponseTooLarge
from coinhaze.nodes.rpc import Call
from coinhaze.units import UNITS

_NETWORKS = {network.name: network for network in BITCOIN_MAGICS.values()}


class RawNode:
    """The raw blocks of a node of Bitcoin's family."""

    def __init__(self, node: ChainNode) -> None:
        self.node = node
        self.name = node.rpc.node
        if node.network not in _NETWORKS:
            raise InputError(f"{self.name}: raw blocks of {node.network} are not known here")
        self.network: Network = _NETWORKS[node.network]

    def _request(self, heights: range) -> list[RawBlock]:
        hashes = self.node.hashes_at(heights)
        calls: list[Call] = [("getblock", [name, 0]) for name in hashes]
        with self.node.missing(heights):
            try:
                bodies = self.node.rpc.batch(calls)
            except ResponseTooLarge:
                bodies = [self.node.rpc.call("getblock", name, 0) for name in hashes]
        octets = [self._octets(body) for body in bodies]
        return [RawBlock(*block) for block in zip(heights, hashes, octets, strict=True)]

    def _octets(self, body: bytes) -> bytes:
        try:
            return bytes.fromhex(msgspec.json.decode(body, type=str))
        except (msgspec.DecodeError, ValueError) as error:
            what = f"{self.name}: an unknown answer to getblock: {error}"
            raise SourceUnreachable(what) from None

    def blocks(self, first: int, last: int) -> Iterator[list[BlockBytes]]:
        """Read blocks, both ends included; each builds on the one before."""
        before = b""
        for chunk, _ in self.node.chunks(self._request, first, last):
            read = [self._checked(block) for block in chunk]
            for block in read:
                previous = block.octets[4:36]
                if before and previous != before:
                    where = f"{self.name}: block {block.height}"
                    raise ChainChanged(where, "does not follow the block before")
                before = block.hash
            yield read

    def _checked(self, block: RawBlock) -> BlockBytes:
        own = double_sha256(block.body[:HEADER])
        if len(block.body) < HEADER or id_text(own) != block.hash:
            where = f"{self.name}: block {block.height}"
            raise LedgerError(where, "the bytes are not those of block", value=block.hash)
        return read_block(block.height, own, block.body, network=self.network, source=self.name)

    def columns(self, blocks: Sequence[BlockBytes]) -> CoinBlocks:
        """Give blocks as plain columns; their transactions are held against the Merkle roots."""
        return coin_blocks(blocks, network=self.network, source=self.name)

    def named(self, first: int, last: int) -> Iterator[NamedBlock]:
        """Read blocks one by one."""
        for some in self.blocks(first, last):
            for block in some:
                hashes = id_text(block.hash), id_text(block.octets[4:36])
                yield NamedBlock(*hashes, self.columns([block]))


def node_source(node: ChainNode, manifest: Manifest, last: int) -> BlockSource:
    """Give the blocks of a node after the last commit, up to a height."""
    raw = RawNode(node)
    first = max(manifest.last_height, 0)
    if last < first:
        return BlockSource(raw.name, iter(()), 0, True, raw_checks(0))
    blocks = (raw.columns(some) for some in raw.blocks(first, last))
    rest = following(blocks, manifest, raw.name)
    unit = UNITS.get(raw.network.name)
    return BlockSource(raw.name, rest, 0, True, raw_checks(last - first + 1), unit=unit)


@dataclass
class NodeFollower:
    """A history and the node it follows."""

    follower: Follower
    node: ChainNode
    block_added: Callable[[BlockFigures, float], None] = lambda figures, seconds: None
    blocks_left: Callable[[int, int], None] = lambda height, blocks: None
    raw: RawNode = field(init=False)
    base: str = field(init=False)  # the hash of the last block that is committed
    current: float | None = None  # when the node was last polled and had nothing new

    def __post_init__(self) -> None:
        self.raw = RawNode(self.node)
        self.base = self._committed_hash()

    def _committed_hash(self) -> str:
        """Find the last committed block on the node's chain; refuse where it has left it."""
        committed = self.follower.committed
        height = committed.last_height
        tip, _ = self.node.tip()
        if tip < height:
            what = f"the node's chain ends at block {tip}, before block {height} of the history"
            raise LedgerError(self.raw.name, what, fix="wait until the node has caught up")
        (block,) = self.raw.named(height, height)
        if last_id(block) != committed.tip:
            self._refuse(height)
        return block.hash

    def _refuse(self, height: int) -> None:
        what = f"the node's chain has left block {height}, up to which the history is committed"
        raise DeepReorganisation(str(self.follower.path), what, fix="index the chain again")

    def step(self) -> int:
        """Bring the history up to the node's tip; give how many blocks came.

        `block_added` receives the seconds since the node was last seen without the block: it has
        had it for no longer. For blocks that it had at the first look, they count from then on.
        """
        follower = self.follower
        begun = time.perf_counter()
        height, tip = self.node.tip()
        if tip == (follower.hash or self.base):
            self.current = begun
            return 0
        since = begun if self.current is None else self.current
        self.current = None
        committed = follower.committed.last_height
        known = {committed: self.base, **follower.hashes}
        common = self.node.common_ancestor(known)
        if common is None:
            self._refuse(committed)
            raise AssertionError
        left = follower.back_to(common)
        if left:
            self.blocks_left(common, left)
        came = 0
        try:
            for block in self.raw.named(common + 1, height):
                if block.previous != (follower.hash or self.base):
                    return came  # reorganised meanwhile: looked at again in the next step
                figures = follower.add(block)
                self.block_added(figures, time.perf_counter() - since)
                came += 1
                hashes = dict(follower.hashes)
                if follower.commit_old():
                    self.base = hashes[follower.committed.last_height]
        except ChainChanged:
            return came
        return came


@dataclass
class Watch:
    """Coins whose figures are printed when they change."""

    names: Sequence[str]
    known: dict[str, CoinFigures | None] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Watch:
        """Read names of coins, one per line; what follows # is left out."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        names = [name for line in lines if (name := line.partition("#")[0].strip())]
        for name in names:
            txid, _, vout = name.rpartition(":")
            if len(txid) != 64 or not vout.isdecimal():
                raise LedgerError(str(path), "no coin: name it txid:vout", value=name)
        return cls(list(dict.fromkeys(names)))

    def changes(self, follower: Follower) -> list[tuple[str, CoinFigures | None]]:
        """Give the coins that changed since the last look: their figures, or None if not there."""
        changed = []
        for name in self.names:
            figures = follower.coin(name)
            if name not in self.known or self.known[name] != figures:
                changed.append((name, figures))
                self.known[name] = figures
        return changed

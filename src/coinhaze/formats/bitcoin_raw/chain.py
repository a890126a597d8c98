"""Files of raw blocks -> blocks in the order of their chain, without names as text.

Files hold blocks in the order they arrived, and such that lost a race. All headers are read first,
which tell heights and who won; then blocks are read by height, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.blocks import BATCH_BYTES, header_at
from coinhaze.formats.bitcoin_raw.contents import BlockBytes, coin_blocks, read_block
from coinhaze.formats.bitcoin_raw.files import BlockFile, errors_named
from coinhaze.formats.bitcoin_raw.heights import Header, place
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, Network
from coinhaze.formats.bitcoin_raw.wire import id_text
from coinhaze.ledger.coin_blocks import CoinBlocks

_OPEN = 64  # files that are open at a time


@dataclass(frozen=True)
class _Place:
    """Where a block lies."""

    file: int
    at: int
    length: int


@dataclass(frozen=True, eq=False)
class RawChain:
    """The blocks of plain files, by height."""

    paths: Sequence[Path]
    network: Network
    headers: Sequence[Header]
    places: Sequence[_Place]
    heights: dict[int, int]  # of the headers on the chain

    @classmethod
    def of(cls, paths: Sequence[Path]) -> RawChain:
        """Read all headers, and find the blocks that are on the chain."""
        headers: list[Header] = []
        places: list[_Place] = []
        network: Network | None = None
        for k, path in enumerate(paths):
            with errors_named(path), BlockFile(path, BITCOIN_MAGICS, network) as file:
                for length in file.lengths():
                    places.append(_Place(k, file.at, length))
                    headers.append(header_at(file, length))
                network = file.network or network
        if network is None:
            raise LedgerError(", ".join(p.name for p in paths), "no blocks")
        return cls(paths, network, headers, places, place(headers, network))

    @property
    def first_height(self) -> int:
        """The lowest height there is."""
        return min(self.heights.values())

    def blocks(self, after: int = -1) -> Iterator[CoinBlocks]:
        """Read the blocks above a height in their order, some four million bytes at a time.

        Every block is held against its Merkle root, and the one before by its hash.
        """
        order = sorted((h, i) for i, h in self.heights.items() if h > after)
        self._refuse_breaks(order)
        bundle: list[BlockBytes] = []
        size = 0
        with ExitStack() as stack:
            opened: dict[int, BlockFile] = {}
            for height, i in order:
                bundle.append(self._read(height, i, opened, stack))
                size += self.places[i].length
                if size >= BATCH_BYTES:
                    yield self._bundle(bundle)
                    bundle, size = [], 0
            if bundle:
                yield self._bundle(bundle)

    def _bundle(self, blocks: Sequence[BlockBytes]) -> CoinBlocks:
        source = ", ".join(path.name for path in self.paths[:1])
        return coin_blocks(blocks, network=self.network, source=source)

    def _read(
        self, height: int, i: int, opened: dict[int, BlockFile], stack: ExitStack
    ) -> BlockBytes:
        where = self.places[i]
        path = self.paths[where.file]
        if where.file not in opened:
            if len(opened) == _OPEN:
                stack.pop_all().close()
                opened.clear()
            opened[where.file] = stack.enter_context(BlockFile(path, BITCOIN_MAGICS))
        with errors_named(path):
            octets = opened[where.file].take_at(where.at, where.length)
        name = self.headers[i].hash
        return read_block(height, name, octets, network=self.network, source=path)

    def _refuse_breaks(self, order: Sequence[tuple[int, int]]) -> None:
        for (low, i), (high, k) in pairwise(order):
            header = self.headers[k]
            if high != low + 1:
                raise LedgerError(
                    header.where, f"block {low + 1} is missing before block", value=high
                )
            if self.headers[i].hash and header.previous != self.headers[i].hash:
                what = f"block {high} does not build on block {low}, but on"
                raise LedgerError(header.where, what, value=id_text(header.previous))

"""Files of raw blocks -> blocks in the order of their chain, without names as text.

Files hold blocks in the order they arrived, and such that lost a race. All headers are read first,
which tell heights and who won; then blocks are read by height, wherever they lie.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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

    def blocks(self, after: int = -1, threads: int = 1) -> Iterator[CoinBlocks]:
        """Read the blocks above a height in their order, some four million bytes at a time.

        Every block is held against its Merkle root, and the one before by its hash. So many threads
        read and check what comes next; how many changes nothing in what is given.
        """
        order = sorted((h, i) for i, h in self.heights.items() if h > after)
        self._refuse_breaks(order)
        ahead: deque[Future[CoinBlocks]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="coinhaze-blocks") as pool:
            try:
                for bundle in self._bundles(order):
                    ahead.append(pool.submit(self._read_bundle, bundle))
                    if len(ahead) > threads:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for waiting in ahead:
                    waiting.cancel()

    def _bundles(self, order: Sequence[tuple[int, int]]) -> Iterator[Sequence[tuple[int, int]]]:
        """Cut blocks into stretches that are read at a time."""
        first = size = 0
        for k, (_, i) in enumerate(order):
            size += self.places[i].length
            if size >= BATCH_BYTES or k + 1 == len(order):
                yield order[first : k + 1]
                first, size = k + 1, 0

    def _read_bundle(self, order: Sequence[tuple[int, int]]) -> CoinBlocks:
        opened: dict[int, BlockFile] = {}
        with ExitStack() as stack:
            blocks = [self._read(height, i, opened, stack) for height, i in order]
        source = ", ".join(path.name for path in self.paths[:1])
        return coin_blocks(blocks, network=self.network, source=source)

    def _read(
        self, height: int, i: int, opened: dict[int, BlockFile], stack: ExitStack
    ) -> BlockBytes:
        where = self.places[i]
        path = self.paths[where.file]
        with errors_named(path):
            if where.file not in opened:
                file = BlockFile(path, BITCOIN_MAGICS)
                opened[where.file] = stack.enter_context(file)
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

"""Raw blocks in a node's own files, blk*.dat, of Bitcoin and chains that share its framing.

Values and owners of spent coins come from the undo file beside (rev*.dat); without it they are
null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.contents import (
    HEADER,
    BlockBytes,
    block_batch,
    body_of,
    read_block,
)
from coinhaze.formats.bitcoin_raw.files import (
    BlockFile,
    UndoFile,
    begins_with,
    errors_named,
    numbered,
    undo_beside,
)
from coinhaze.formats.bitcoin_raw.heights import Header, all_known, place, stated_height
from coinhaze.formats.bitcoin_raw.networks import BITCOIN_MAGICS, MERGED, Network
from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256, read_uint32
from coinhaze.ledger.batches import Batch

BATCH_BYTES = 1 << 22  # some 50,000 rows
_NO_BLOCK = "give blk*.dat; rev*.dat is read where it lies beside them"
_HEAD = 512  # of a block: enough to see the height in its coinbase, unless another chain's work is


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a frame of a known network, hidden by a key or not."""
    return begins_with(head, BITCOIN_MAGICS)


def batches(path: Path) -> Iterator[Batch]:
    """Read the blocks of a file that are on the chain, in the order of the file.

    Looks into the files beside it, by number, where heights or lost races depend on them.
    """
    with errors_named(path):
        network, headers = _headers_around(path)
        if network is None:
            return
        heights = place(headers, network)
        names = _hashes(headers, heights)
        beside = undo_beside(path)
        undo = UndoFile(beside, network) if beside else None
        with BlockFile(path, BITCOIN_MAGICS) as file:
            for blocks in _bundles(file, heights, names):
                yield block_batch(blocks, network=network, source=path, undo=undo, read=file.at)


def _headers_around(path: Path) -> tuple[Network | None, list[Header]]:
    """Give the headers of a file, then those of files beside it as far as needed."""
    network, headers = _headers(path, own=True)
    if network is None:
        return None, []
    # The next file tells which of two last blocks won; both neighbours, as blocks may be shuffled.
    for step in (1, -1):
        headers += _headers_beside(path, step)
    step = -2
    if not all_known(headers, network):
        while beside := _headers_beside(path, step):
            headers += beside
            step -= 1
    return network, headers


def _headers_beside(path: Path, step: int) -> list[Header]:
    other = numbered(path, step)
    if other is None:
        return []
    with errors_named(other):
        return _headers(other, own=False)[1]


def _headers(path: Path, *, own: bool) -> tuple[Network | None, list[Header]]:
    headers = []
    with BlockFile(path, BITCOIN_MAGICS) as file:
        for length in file.lengths():
            headers.append(header_at(file, length, own=own))
        return file.network, headers


def header_at(file: BlockFile, length: int, *, own: bool = True) -> Header:
    """Read the header of the block a file is at, and step over the rest of it."""
    assert file.network is not None
    where = f"{file.path}: byte {file.at}"
    merged = file.network.rules & MERGED
    octets = file.take(length if merged else min(length, _HEAD))
    file.skip(length - len(octets))
    return _header(octets, where, file.network, own)


def _header(octets: bytes, where: str, network: Network, own: bool) -> Header:
    if len(octets) < HEADER:
        raise LedgerError(where, "no whole block header", fix=_NO_BLOCK)
    time = read_uint32(octets, 68)
    stated = None
    version = int.from_bytes(octets[:4], "little", signed=True)
    if network.rules & MERGED:
        version &= 0xFF  # above it stand the number of the chain and a mark of merged mining
    if version >= 2:
        try:
            stated = stated_height(version, _coinbase_script(octets, network), time)
        except Malformed as error:
            raise LedgerError(where, f"no block: {error}", fix=_NO_BLOCK) from None
    hash_ = double_sha256(octets[:HEADER]) if network.hash_known else b""
    return Header(where, hash_, octets[4:36], time, stated, own)


def _coinbase_script(octets: bytes, network: Network) -> bytes:
    cursor = Cursor(octets, body_of(octets, network))
    cursor.compact_size()
    cursor.skip(4)
    if cursor.compact_size() == 0:
        cursor.skip(2)
    cursor.skip(36)
    return cursor.take(min(cursor.compact_size(), 8))


def _hashes(headers: Sequence[Header], heights: Mapping[int, int]) -> dict[int, bytes]:
    """Give hashes; where they cannot be computed, what the block above says of the one below."""
    above = {height: headers[i].previous for i, height in heights.items()}
    return {i: headers[i].hash or above.get(height + 1, b"") for i, height in heights.items()}


def _bundles(
    file: BlockFile, heights: Mapping[int, int], names: Mapping[int, bytes]
) -> Iterator[list[BlockBytes]]:
    """Gather blocks of the chain to some four million bytes at a time."""
    blocks: list[BlockBytes] = []
    octets = 0
    for i, length in enumerate(file.lengths()):
        if i not in heights:
            file.skip(length)
            continue
        assert file.network is not None
        taken = file.take(length)
        blocks.append(
            read_block(heights[i], names[i], taken, network=file.network, source=file.path)
        )
        octets += length
        if octets >= BATCH_BYTES:
            yield blocks
            blocks, octets = [], 0
    if blocks:
        yield blocks

"""Files of raw blocks become a history: what parsing them on several cores wins.

Writes a simulated history as files of a node, with scripts and signatures of the usual length, and
indexes them with one thread that parses, hashes and checks, and with as many as there are cores,
in turn. Prints megabytes a second of wall time and of CPU time, and what share of the CPU time the
thread that numbers takes: no number of cores makes it quicker than that thread.
All files of the histories must be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from unittest.mock import patch

from coinhaze.formats.bitcoin_raw.networks import BITCOIN
from coinhaze.formats.bitcoin_raw.wire import double_sha256, merkle_root
from coinhaze.history import History
from coinhaze.history.index import sources
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.simulate.history import bitcoin_history

BLOCKS = 400
FILE = 1 << 25  # bytes of a file
REPEATS = 3
SIGNED = bytes([107]) + bytes(107)  # the script of an input: a signature and a key
PAID = b"\x19\x76\xa9\x14" + bytes(20) + b"\x88\xac"
NEVER = b"\x03\x6a\x01\xff"


def raw_blocks(parts: Iterator[CoinBlocks]) -> Iterator[bytes]:
    """Write blocks of a simulated history as a node stores them.

    One more comes first, since the coin of a chain's first block can never be spent.
    """
    named: dict[bytes, bytes] = {}
    first = next(bitcoin_history(1))
    text = _transaction(first, 0, [0], [1], named, 0)
    head = b"\x01\0\0\0" + bytes(32) + double_sha256(text) + bytes(12)
    previous = double_sha256(head)
    yield head + b"\x01" + text
    for part in parts:
        ends = [list(accumulate(c.tolist())) for c in (part.sizes, part.inputs, part.outputs)]
        t = 0
        for height, time_, last in zip(part.heights, part.times, ends[0], strict=True):
            texts = []
            while t < last:
                texts.append(_transaction(part, t, ends[1], ends[2], named, int(height) + 1))
                named[part.ids[t].tobytes()] = double_sha256(texts[-1])
                t += 1
            root = merkle_root([double_sha256(text) for text in texts])
            head = b"\x01\0\0\0" + previous + root + int(time_).to_bytes(4, "little") + bytes(8)
            previous = double_sha256(head)
            yield head + _size(len(texts)) + b"".join(texts)


def _transaction(
    part: CoinBlocks,
    t: int,
    ins: list[int],
    outs: list[int],
    named: dict[bytes, bytes],
    height: int,
) -> bytes:
    spent = range(ins[t - 1] if t else 0, ins[t])
    taken = [
        named[part.spent_ids[e].tobytes()]
        + int(part.spent_vouts[e]).to_bytes(4, "little")
        + SIGNED
        + b"\xff\xff\xff\xff"
        for e in spent
    ]
    if part.coinbase[t]:
        taken = [bytes(32) + b"\xff" * 4 + b"\x08\x07" + height.to_bytes(7, "little") + bytes(4)]
    made = [
        int(part.made_values[o]).to_bytes(8, "little") + (PAID if part.made_spendable[o] else NEVER)
        for o in range(outs[t - 1] if t else 0, outs[t])
    ]
    body = _size(len(taken)) + b"".join(taken) + _size(len(made)) + b"".join(made)
    return b"\x01\0\0\0" + body + bytes(4)


def _size(number: int) -> bytes:
    if number < 0xFD:
        return bytes([number])
    return b"\xfd" + number.to_bytes(2, "little")


def write_files(folder: Path, blocks: int) -> list[Path]:
    """Write a simulated history of so many blocks as files of a node."""
    paths: list[Path] = []
    left = 0
    for block in raw_blocks(bitcoin_history(blocks)):
        if len(block) + 8 > left:
            paths.append(folder / f"blk{len(paths):05}.dat")
            left = FILE
        with open(paths[-1], "ab") as file:
            file.write(BITCOIN.magic + len(block).to_bytes(4, "little") + block)
        left -= len(block) + 8
    return paths


def main(blocks: int = BLOCKS, repeats: int = REPEATS) -> dict[int, float]:
    """Print megabytes a second by threads; give those of wall time."""
    cores = len(os.sched_getaffinity(0))
    best: dict[int, float] = {}
    digests = set()
    with tempfile.TemporaryDirectory() as home:
        paths = write_files(Path(home), blocks)
        size = sum(path.stat().st_size for path in paths) / 1e6
        print(f"{size:.0f} MB in {len(paths)} files; {cores} cores", flush=True)
        for k in range(repeats + 1):
            for threads in sorted({1, cores}):
                with patch.object(sources, "workers_for", lambda *_, n=threads: n):
                    wall, cpu = time.perf_counter(), time.process_time()
                    own = time.thread_time()
                    history = History.index(Path(home) / f"{k}.{threads}", paths)
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                    own = time.thread_time() - own
                files = sorted(history.path.glob("*.arrow"))
                whole = b"".join(file.read_bytes() for file in files)
                digests.add(hashlib.sha256(whole).hexdigest())
                if k:  # the first compiles
                    best[threads] = max(best.get(threads, 0.0), size / wall)
                    print(f"{threads} threads: {size / wall:.0f} MB/s, {size / cpu:.0f} a core; "
                          f"numbering {own / cpu:.0%}",
                          flush=True)  # fmt: skip
    print(f"the same bytes: {'holds' if len(digests) == 1 else 'does NOT hold'}")
    return best


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    main(parser.parse_args().blocks)

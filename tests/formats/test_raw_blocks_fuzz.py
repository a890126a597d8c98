"""Mutants of small files of raw blocks: rows that obey the schema, or an error of ours."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coinhaze.errors import CoinhazeError
from coinhaze.formats.bitcoin_raw import blocks as bitcoin_blocks
from coinhaze.formats.bitcoin_raw import contents as block_contents
from coinhaze.formats.bitcoin_raw.wire import Cursor
from coinhaze.formats.zcash_raw import blocks as zcash_blocks
from coinhaze.formats.zcash_raw.transactions import read_transaction
from coinhaze.ledger.batches import SCHEMAS, Batch
from formats import block_samples, zcash_samples
from formats.block_samples import file_of, undo_frame, varied_blocks

MUTANTS, MANY = 250, 20_000
NAME = re.compile("[0-9a-f]{64}")
MAXIMUM = {"height": 2**31, "vout": 2**32, "vin": 2**32, "spent_vout": 2**32, "time": 2**32}


class Everything:
    """Equal to all: lets mutants pass the Merkle check, to meet what lies behind it."""

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def bitcoin_files() -> Iterator[dict[str, bytes]]:
    blocks, undos = varied_blocks()
    records = (undo_frame(u, b[4:36]) for u, b in zip(undos, blocks, strict=True))
    yield {"blk00000.dat": file_of(blocks), "rev00000.dat": b"".join(records)}
    old = block_samples.chain(0, 5, previous=bytes(32), version=1)
    yield {"blk00001.dat": file_of(old[3:]), "blk00000.dat": file_of(old[:3])}
    work = block_samples.coinbase(5) + bytes(32) + b"\1" + bytes(36) + b"\0" + bytes(84)
    merged = block_samples.block(
        b"\7" * 32, [block_samples.coinbase(2_000_000)], version=0x620104, work=work
    )
    yield {"blk00000.dat": file_of([merged], bytes.fromhex("c0c0c0c0")) + bytes(50)}
    dash = file_of(block_samples.chain(2_000_000, 2), bytes.fromhex("bf0c6bbd"))
    yield {"blk00000.dat": block_samples.hide(dash, b"12345678"), "xor.dat": b"12345678"}


def zcash_files() -> Iterator[dict[str, bytes]]:
    blocks = zcash_samples.chain(zcash_samples.VARIED)
    yield {"blocks": b"".join(b.hex().encode() + b"\n" for b in blocks[:2])}
    yield {"blocks": b"".join(blocks)}
    yield {"blk00000.dat": file_of(blocks, zcash_samples.MAIN)}
    made = [
        zcash_samples.made_by_miner(1000).octets(),
        zcash_samples.Made(5, spends=1, sapling_outputs=1, actions=1).octets(),
    ]
    ids = [read_transaction(Cursor(t)).txid for t in made]
    yield {"blocks": zcash_samples.block(b"\7" * 32, made, ids=ids)}


def mutate(octets: bytes, chance: random.Random) -> bytes:
    """Flip bits, cut, insert, copy or write small numbers; headers and counts most of all."""
    changed = bytearray(octets)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(changed) + 1)
        if chance.random() < 0.3:
            at = min(at, chance.randrange(300))
        length = chance.choice((1, 1, 2, 4, 8, 40, 200))
        kind = chance.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[at : at + length]
        elif kind == 2:
            changed[at:at] = chance.randbytes(length)
        elif kind == 3:
            other = chance.randrange(len(changed) + 1)
            changed[at:at] = changed[other : other + length]
        elif kind == 4:
            changed[at : at + length] = chance.choice((b"\0", b"\xff", b"\xfd", b"\x80")) * length
        else:
            changed[at : at + 1] = bytes([chance.choice((0, 1, 2, 0xFC, 0xFD, 0xFE, 0xFF))])
    return bytes(changed)


def check_rows(batch: Batch) -> None:
    for name, table in batch.tables.items():
        table.validate(full=True)
        assert table.num_rows
        assert batch.where(name, table.num_rows - 1)
        for field in SCHEMAS[name]:
            column = table[field.name]
            assert field.nullable or not column.null_count
            known = column.drop_null()
            if field.type == pa.int64() and field.name != "into_pool" and len(known):
                assert pc.min(known).as_py() >= 0
                assert pc.max(known).as_py() < MAXIMUM.get(field.name, 2**63)
            if field.name in ("hash", "txid", "spent_txid", "previous"):
                assert all(NAME.fullmatch(text) for text in known.to_pylist())
            if field.name == "owner":
                assert all((text and text.isalnum()) or "," in text for text in known.to_pylist())


def try_mutants(
    reader: ModuleType, files: list[dict[str, bytes]], folder: Path, number: int, seed: int
) -> int:
    """Read mutants of one of several files each; give how many had rows."""
    chance = random.Random(seed)
    passed, said = 0, []
    for n in range(number):
        whole = files[n % len(files)]
        place = folder / str(n % len(files))
        place.mkdir(exist_ok=True)
        broken = chance.choice(sorted(whole))
        for called, octets in whole.items():
            (place / called).write_bytes(mutate(octets, chance) if called == broken else octets)
        reader.recognises((place / next(iter(whole))).read_bytes()[:4096])
        try:
            for batch in reader.batches(place / next(iter(whole))):
                check_rows(batch)
                passed += 1
        except CoinhazeError as error:
            said.append(str(error))
    assert all(str(folder) in message for message in said)
    return passed


def run(reader: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    files = list(bitcoin_files() if reader is bitcoin_blocks else zcash_files())
    for whole in files:
        (folder / "whole").mkdir(exist_ok=True)
        for path in (folder / "whole").iterdir():
            path.unlink()
        for called, octets in whole.items():
            (folder / "whole" / called).write_bytes(octets)
        list(reader.batches(folder / "whole" / next(iter(whole))))
    try_mutants(reader, files, folder, number // 2, seed=number)
    if reader is bitcoin_blocks:
        monkeypatch.setattr(block_contents, "_check_roots", lambda *_: None)
    else:
        monkeypatch.setattr(reader, "merkle_root", lambda _: Everything())
        monkeypatch.setattr(reader, "id_text", lambda octets: octets[::-1].hex())
    assert try_mutants(reader, files, folder, number // 2, seed=number + 1) > number // 20


@pytest.mark.parametrize("reader", [bitcoin_blocks, zcash_blocks])
def test_mutants_give_rows_or_an_error_of_ours(
    reader: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(reader, tmp_path, monkeypatch, MUTANTS)


@pytest.mark.long
@pytest.mark.parametrize("reader", [bitcoin_blocks, zcash_blocks])
def test_many_mutants_give_rows_or_an_error_of_ours(
    reader: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(reader, tmp_path, monkeypatch, MANY)

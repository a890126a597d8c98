"""Packed files: read as what they hold, and refused when that is out of all proportion."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from coinhaze.errors import InputError, UsageError
from coinhaze.formats import compression as packed
from coinhaze.formats.compression import MAX_RATIO, RATIO_VARIABLE, open_plain
from coinhaze.readers import read

Pack = Callable[[bytes], bytes]
LINE = b"alice,bob,1\n"


def _zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def _zip(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("transfers.csv", content)
    return out.getvalue()


PACKS: dict[str, Pack] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": _zstd,
    ".zlib": zlib.compress,
    ".bz2": bz2.compress,
    ".zip": _zip,
}


def _csv(lines: int) -> bytes:
    return b"from,to,amount\n" + LINE * lines


@pytest.mark.parametrize("suffix", PACKS)
def test_a_packed_file_reads_as_what_it_holds(tmp_path: Path, suffix: str) -> None:
    plain = _csv(3)
    path = tmp_path / f"transfers.csv{suffix}"
    path.write_bytes(PACKS[suffix](plain))
    with open_plain(path) as file:
        assert file.readline() == b"from,to,amount\n"
        assert file.read() == LINE * 3
        assert file.tell() == len(plain)


@pytest.mark.parametrize("suffix", PACKS)
def test_a_file_that_unpacks_to_far_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(packed, "FREE", 1000)
    path = tmp_path / f"transfers.csv{suffix}"
    path.write_bytes(PACKS[suffix](_csv(200_000)))
    limit = MAX_RATIO * path.stat().st_size
    assert limit < len(_csv(200_000))
    with pytest.raises(InputError, match=rf"more than {limit:,} bytes: .*{RATIO_VARIABLE}"):
        read(path)
    with open_plain(path) as file:
        with pytest.raises(InputError, match=RATIO_VARIABLE):
            file.readlines()
        assert file.tell() <= limit + 2**20  # it stopped there, not at the end
    monkeypatch.setenv(RATIO_VARIABLE, "1000000")
    assert len(read(path)) == 200_000


@pytest.mark.parametrize("suffix", PACKS)
def test_ledgers_that_pack_a_hundredfold_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(packed, "FREE", 1000)
    # As regular as ledgers come: the same two parties, and a few amounts.
    chance = random.Random(1)
    lines = "".join(f"alice{1:040},bob{2:040},{chance.randrange(1, 20)}\n" for _ in range(40_000))
    path = tmp_path / f"transfers.csv{suffix}"
    path.write_bytes(PACKS[suffix](f"from,to,amount\n{lines}".encode()))
    ratio = len(lines) / path.stat().st_size
    assert 50 < ratio < MAX_RATIO
    assert len(read(path)) == 40_000


def test_small_files_may_hold_what_fits_into_memory_with_ease(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(4 << 20)))
    assert (4 << 20) / path.stat().st_size > MAX_RATIO
    with open_plain(path) as file:
        assert len(file.read()) == 4 << 20


def test_a_bomb_of_every_kind_of_ledger_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "FREE", 1 << 20)
    starts = {
        "csv": b"from,to,amount\n",
        "blockchair": b"block_id\thash\ttime\tsize\tweight\tversion\tlock_time\tis_coinbase\t"
        b"has_witness\tinput_count\toutput_count\tinput_total\tinput_total_usd\toutput_total\t"
        b"output_total_usd\tfee\tfee_usd\tfee_per_kb\tfee_per_kb_usd\tfee_per_kwu\t"
        b"fee_per_kwu_usd\tcdd_total\n",
        "json": b'{"hash": "',
        "blocks": b"\xf9\xbe\xb4\xd9" + (80).to_bytes(4, "little"),
    }
    for name, start in starts.items():
        path = tmp_path / f"{name}.xz"
        with lzma.open(path, "wb", preset=0) as file:
            file.write(start)
            for _ in range(4):
                file.write(bytes(1 << 22))
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "", "9" * 5000, "²"])
def test_a_ratio_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    path = tmp_path / "transfers.csv.gz"
    path.write_bytes(gzip.compress(_csv(1)))
    monkeypatch.setenv(RATIO_VARIABLE, value)
    with pytest.raises(UsageError, match=f"{RATIO_VARIABLE} is a whole number"):
        read(path)

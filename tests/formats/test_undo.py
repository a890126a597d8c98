from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path

import pytest

from formats import block_samples as samples
from formats import block_twin as twin
from formats.block_reading import fault, rows, write
from formats.block_samples import (
    block,
    coinbase,
    file_of,
    frame,
    pay,
    pay_to_key_hash,
    spend,
    transaction,
    varied_blocks,
)

KEY = bytes.fromhex("0123456789abcdef")
PLAIN = transaction([spend((b"\5" * 32, 0))], [pay(1, pay_to_key_hash(1))])


def varied_files(folder: Path, order: Sequence[int] = (0, 1, 2)) -> Path:
    """Write blocks and, in an order, their undo."""
    blocks, undos = varied_blocks()
    records = [samples.undo_frame(undos[i], blocks[i][4:36]) for i in order]
    write(folder, b"".join(records), "rev00000.dat")
    return write(folder, file_of(blocks))


class TestUndo:
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1,)])
    def test_spent_coins_have_values_and_owners(self, tmp_path: Path, order: Sequence[int]) -> None:
        read = rows(varied_files(tmp_path, order))
        coins = {(row["txid"], row["vout"]): row for row in read["outputs"]}
        assert len(read["inputs"]) == 11
        for row in read["inputs"]:
            coin = coins[row["spent_txid"], row["spent_vout"]]
            assert (row["value"], row["owner"]) == (coin["value"], coin["owner"])

    def test_undo_is_hidden_and_packed_like_blocks(self, tmp_path: Path) -> None:
        want = rows(varied_files(tmp_path))
        for path in list(tmp_path.iterdir()):
            packed = lzma.compress(samples.hide(path.read_bytes(), KEY))
            path.with_name(path.name + ".xz").write_bytes(packed)
            path.unlink()
        (tmp_path / "xor.dat").write_bytes(KEY)
        assert rows(tmp_path / "blk00000.dat.xz") == want

    def test_without_a_record_the_values_are_not_known(self, tmp_path: Path) -> None:
        path = varied_files(tmp_path, (0, 2))
        assert {row["value"] for row in rows(path)["inputs"]} == {None}

    def test_records_of_other_blocks_of_the_same_shape_are_passed_over(
        self, tmp_path: Path
    ) -> None:
        path = varied_files(tmp_path)
        rev = tmp_path / "rev00000.dat"
        _, undos = varied_blocks()
        other = samples.undo_frame(undos[1], b"\3" * 32)
        rev.write_bytes(other + rev.read_bytes())
        assert all(row["value"] is not None for row in rows(path)["inputs"])

    def test_a_record_that_fails_its_checksum_is_refused(self, tmp_path: Path) -> None:
        path = varied_files(tmp_path, (1,))
        rev = tmp_path / "rev00000.dat"
        octets = bytearray(rev.read_bytes())
        octets[-40] ^= 1
        rev.write_bytes(octets)
        assert "rev00000.dat: byte 8: undo data that fails its checksum" in fault(path)

    @pytest.mark.parametrize(
        ("record", "said"),
        [
            (b"", "cut short"),
            (b"\1", "cut short"),
            (b"\1\1\2\0", "cut short"),
            (b"\0\0", "bytes left over"),
            (b"\xfd\1\0", "more bytes than it needs"),
            (b"\1\1" + b"\xff" * 20, "above 2^63 - 1"),
            (b"\1\1\0" + samples.varint(2**63 - 1) + b"\6", "above 2^63 - 1"),
            (b"\1\1\0\1" + samples.varint(2**62), "cut short"),
        ],
    )
    def test_broken_records_are_refused(self, tmp_path: Path, record: bytes, said: str) -> None:
        path = varied_files(tmp_path)
        write(tmp_path, samples.undo_frame(record, bytes(32)), "rev00000.dat")
        assert said in fault(path)

    @pytest.mark.parametrize(
        "value",
        [0, 1, 9, 10, 99, 100, 10**8, 21 * 10**14, 123_456_789, 10**9 * 7, 10**18, 2**59 + 1],
    )
    @pytest.mark.parametrize("height", [0, 5, 800_000])
    def test_amounts_are_the_ones_written(self, tmp_path: Path, value: int, height: int) -> None:
        one = block(b"\7" * 32, [coinbase(300_000), PLAIN])
        record = b"\1\1" + samples.undo_coin(value, pay_to_key_hash(3), height, coinbase=True)
        write(tmp_path, samples.undo_frame(record, b"\7" * 32), "rev00000.dat")
        (row,) = rows(write(tmp_path, frame(one)))["inputs"]
        assert row["value"] == value
        assert row["owner"] == twin.owner(pay_to_key_hash(3))

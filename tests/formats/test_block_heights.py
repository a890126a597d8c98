from __future__ import annotations

from pathlib import Path

import pytest

from coinhaze.formats.bitcoin_raw.heights import stated_height
from formats import block_samples as samples
from formats.block_reading import fault, heights, rows, write
from formats.block_samples import (
    NO_BLOCK,
    block,
    chain,
    coinbase,
    file_of,
    name,
)


class TestHeights:
    def test_blocks_may_stand_in_any_order(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 5)
        order = [3, 0, 4, 2, 1]
        path = write(tmp_path, file_of([blocks[i] for i in order]))
        assert heights(path) == [300_000 + i for i in order]

    def test_a_gap_is_no_fault(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 9)
        assert heights(write(tmp_path, file_of(blocks[:2] + blocks[6:]))) == [
            300_000,
            300_001,
            300_006,
            300_007,
            300_008,
        ]

    @pytest.mark.parametrize("height", [1, 16, 17, 127, 128, 255, 256, 32767, 32768, 8388608])
    def test_blocks_of_version_2_tell_their_height(self, tmp_path: Path, height: int) -> None:
        path = write(tmp_path, file_of(chain(height, 1, version=2), samples.REGTEST))
        assert heights(path) == [height]

    def test_blocks_of_version_1_are_counted_from_the_first(self, tmp_path: Path) -> None:
        blocks = chain(0, 6, previous=NO_BLOCK, version=1)
        path = write(tmp_path, file_of(blocks[::-1]))
        assert heights(path) == [5, 4, 3, 2, 1, 0]
        assert rows(path)["blocks"][-1]["previous"] is None

    def test_blocks_of_version_1_are_placed_by_later_ones(self, tmp_path: Path) -> None:
        old = chain(300_000, 3, version=1)
        new = chain(300_003, 1, previous=name(old[-1]))
        assert heights(write(tmp_path, file_of(old + new))) == [300_000, 300_001, 300_002, 300_003]

    def test_what_version_1_happens_to_begin_with_is_no_height(self, tmp_path: Path) -> None:
        one = block(b"\7" * 32, [coinbase(400_000)], version=1)
        said = fault(write(tmp_path, file_of([one])))
        assert "1 blocks of unknown height" in said
        assert name(one)[::-1].hex() in said
        assert "keep the files from blk00000.dat on" in said

    def test_files_before_give_heights(self, tmp_path: Path) -> None:
        blocks = chain(0, 9, previous=NO_BLOCK, version=1)
        for number in range(3):
            part = file_of(blocks[3 * number : 3 * number + 3])
            write(tmp_path, part, f"blk{number:05}.dat")
        assert heights(tmp_path / "blk00002.dat") == [6, 7, 8]
        (tmp_path / "blk00000.dat").unlink()
        assert "unknown height" in fault(tmp_path / "blk00002.dat")

    def test_nonsense_before_the_rule_gives_way_to_the_chain(self, tmp_path: Path) -> None:
        """Some blocks of version 2 told a wrong height before Bitcoin's rule was in force."""
        odd = block(b"\7" * 32, [coinbase(123_456)], version=2)
        blocks = [odd, *chain(300_001, 2, previous=name(odd))]
        assert heights(write(tmp_path, file_of(blocks))) == [300_000, 300_001, 300_002]

    def test_heights_that_contradict_each_other_are_refused(self, tmp_path: Path) -> None:
        one = chain(300_000, 1)
        two = chain(300_005, 1, previous=name(one[0]))
        assert "tells a height 4 off" in fault(write(tmp_path, file_of(one + two)))

    def test_a_time_in_place_of_a_height_is_no_height(self) -> None:
        script = b"\4" + samples.TIME.to_bytes(4, "little")
        assert stated_height(2, script, samples.TIME) is None

    @pytest.mark.parametrize(
        "script", ["", "00", "0110", "020001", "03404000", "0301", "0180", "05"]
    )
    def test_what_is_not_written_as_a_height_is_none(self, script: str) -> None:
        octets = bytes.fromhex(script)
        found = stated_height(2, octets, samples.TIME)
        assert found == (256 if script == "020001" else None)

    def test_a_block_that_stands_there_twice_is_read_once(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 3)
        assert heights(write(tmp_path, file_of([*blocks, blocks[1]]))) == [
            300_000,
            300_001,
            300_002,
        ]


class TestLostRaces:
    def test_a_block_that_nothing_builds_on_is_left_out(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 4)
        lost = chain(300_001, 1, previous=name(blocks[0]), salt=1)
        path = write(tmp_path, file_of([blocks[0], *lost, *blocks[1:]]))
        names = [row["hash"] for row in rows(path)["blocks"]]
        assert names == [name(b)[::-1].hex() for b in blocks]

    def test_the_shorter_of_two_branches_is_left_out(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 5)
        lost = chain(300_001, 3, previous=name(blocks[0]), salt=1)
        assert len(heights(write(tmp_path, file_of(blocks + lost)))) == 5

    def test_a_loser_whose_winner_lies_elsewhere_is_left_out(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 4)
        lost = chain(300_001, 1, previous=name(blocks[0]), salt=1)
        path = write(tmp_path, file_of([*lost, *blocks[2:]]))
        assert heights(path) == [300_002, 300_003]

    def test_a_race_that_is_not_decided_is_named(self, tmp_path: Path) -> None:
        blocks = chain(300_000, 2)
        rival = chain(300_001, 1, previous=name(blocks[0]), salt=1)
        said = fault(write(tmp_path, file_of(blocks + rival)))
        assert "two blocks of height 300001" in said

    @pytest.mark.parametrize("winner", [0, 1])
    def test_the_next_file_decides_a_race(self, tmp_path: Path, winner: int) -> None:
        first = chain(300_000, 1)
        rivals = [chain(300_001, 1, previous=name(first[0]), salt=s)[0] for s in (0, 1)]
        then = chain(300_002, 1, previous=name(rivals[winner]))
        path = write(tmp_path, file_of(first + rivals), "blk00007.dat")
        write(tmp_path, file_of(then), "blk00008.dat")
        names = [row["hash"] for row in rows(path)["blocks"]]
        assert names == [name(first[0])[::-1].hex(), name(rivals[winner])[::-1].hex()]

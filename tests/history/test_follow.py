"""A history that follows its chain is, bit for bit, the one that is indexed at once."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coinhaze import History, LedgerError, ResourceError, UsageError
from coinhaze.history import files
from coinhaze.history.follow import DeepReorganisation, Follower
from coinhaze.history.index.row_kernels import BEFORE, COINS, FREE, LIVE, SLOTS
from coinhaze.history.journal import Journal, packed, unpacked
from history.branches import Branch

SEED = 7


def indexed(path: Path, branch: Branch, blocks: int) -> Path:
    """Index the first blocks of a branch."""
    History.index_blocks(path, [b.content for b in branch.blocks[:blocks]])
    return path


def opened(path: Path, **options: int) -> Follower:
    return Follower(path, draws=128, seed=SEED, **options)


def tape_of(follower: Follower) -> dict[str, np.ndarray]:
    """Give the whole tape: committed pieces, and what is pending."""
    indexer = follower.indexer
    committed = History.open(follower.path).tape.pieces
    arrays = indexer.columns.arrays
    rows, terms = indexer.rows, int(indexer.live.counts[1])
    ends = {"rows": rows, "terms": terms}
    named = {("rows", "slot"): "row_slot", ("rows", "terms"): "row_terms"}
    named |= {("terms", "slot"): "slot", ("terms", "weight"): "weight"}
    return {
        name: np.concatenate(
            [*(getattr(piece, name) for piece in committed), arrays[key][: ends[key[0]]]]
        )
        for key, name in named.items()
    }


def assert_same(follower: Follower, branch: Branch, path: Path) -> None:
    """Hold a history against one that is indexed at once."""
    with opened(indexed(path, branch, len(branch.blocks))) as fresh:
        for name, column in tape_of(fresh).items():
            np.testing.assert_array_equal(tape_of(follower)[name], column, err_msg=name)
        one, other = follower.indexer, fresh.indexer
        assert one.live.counts[[SLOTS, FREE, LIVE]].tolist() == (
            other.live.counts[[SLOTS, FREE, LIVE]].tolist()
        )
        for name, table in one.live.tables().items():
            assert table.equals(other.live.tables()[name]), name
        slots = int(one.live.counts[SLOTS])
        held = np.flatnonzero(other.live.slots[:slots, COINS])
        # Stamps, where coins stand and months without changes are not part of the answer.
        assert (one.live.slots[held, :4] == other.live.slots[held, :4]).all()
        assert (one.live.slots[held, BEFORE:] == other.live.slots[held, BEFORE:]).all()
        np.testing.assert_array_equal(follower.totals[held], fresh.totals[held])
        for mine, its in zip(follower.rooms, fresh.rooms, strict=True):
            np.testing.assert_array_equal(mine[held], its[held])
        assert (one.manifest.last_height, one.manifest.tip) == (
            other.manifest.last_height,
            other.manifest.tip,
        )
        unspent = branch.unspent[-1]
        assert int(one.live.counts[LIVE]) == len(unspent)
        for (txid, vout), value in random.Random(1).sample(sorted(unspent.items()), 5):
            name = f"{txid[::-1].hex()}:{vout}"
            assert follower.coin(name) == fresh.coin(name)
            assert value == 0 or follower.coin(name).balance == value  # type: ignore[union-attr]


def test_blocks_that_come_one_by_one_are_those_indexed_at_once(tmp_path: Path) -> None:
    branch = Branch(1).grow(60)
    with opened(indexed(tmp_path / "x", branch, 20)) as follower:
        for block in branch.blocks[20:]:
            figures = follower.add(block)
            assert figures.height == block.height
        assert_same(follower, branch, tmp_path / "fresh")
    with opened(tmp_path / "x") as again:
        assert_same(again, branch, tmp_path / "again")


@pytest.mark.parametrize(
    "depth", [1, 30, 31, 39, *(pytest.param(k, marks=pytest.mark.long) for k in (5, 29))]
)
def test_a_reorganisation_is_taken_back_bit_for_bit(depth: int, tmp_path: Path) -> None:
    branch = Branch(2).grow(60)
    other = branch.forked(depth, seed=9).grow(depth + 1)
    with opened(indexed(tmp_path / "x", branch, 20), retained=30) as follower:
        for block in branch.blocks[20:]:
            follower.add(block)
        assert follower.back_to(59 - depth) == depth
        assert_same(follower, branch.forked(depth, 0), tmp_path / "back")
        for block in other.blocks[60 - depth :]:
            follower.add(block)
        assert_same(follower, other, tmp_path / "fresh")
    with opened(tmp_path / "x") as again:
        assert_same(again, other, tmp_path / "again")


def test_old_blocks_are_committed_with_scores_and_the_rest_can_be_taken_back(
    tmp_path: Path,
) -> None:
    branch = Branch(3).grow(90)
    path = indexed(tmp_path / "x", branch, 10)
    with opened(path, retained=20, commit_after=15) as follower:
        commits = 0
        for block in branch.blocks[10:]:
            follower.add(block)
            commits += follower.commit_old()
        assert commits == 4
        history = History.open(path)
        history.verify()
        assert history.manifest.last_height == 89 - len(follower.hashes)
        kept = history.scores()
        follower.back_to(70)
        assert_same(follower, branch.forked(19, 0), tmp_path / "fresh")
        with pytest.raises(DeepReorganisation, match="has left block 3 and those above"):
            follower.back_to(2)
    scored = History.open(path).score(draws=128, seed=SEED)
    assert scored.to_arrow().equals(kept.to_arrow())
    assert History.open(path).completeness.line()


def test_what_does_not_follow_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    branch = Branch(4).grow(40)
    other = branch.forked(8, seed=5).grow(8)
    with opened(indexed(tmp_path / "x", branch, 20)) as follower:
        for block in branch.blocks[20:35]:
            follower.add(block)
        with pytest.raises(LedgerError, match="block 35 is missing"):
            follower.add(branch.blocks[36])
        with pytest.raises(LedgerError, match="does not build on block 34"):
            follower.add(other.blocks[35])
        assert_same(follower, branch.forked(5, 0), tmp_path / "fresh")
        with pytest.raises(UsageError, match="another process is writing"):
            opened(tmp_path / "x")


def test_a_record_that_is_cut_or_damaged_does_not_count(tmp_path: Path) -> None:
    branch = Branch(5).grow(30)
    path = indexed(tmp_path / "x", branch, 20)
    with opened(path) as follower:
        for block in branch.blocks[20:]:
            follower.add(block)
        places = follower.places
    whole = (path / files.JOURNAL).read_bytes()
    for cut in (0, 1, 39, 41, places[21], places[21] + 7, places[29] + 50, len(whole) - 1):
        (path / files.JOURNAL).write_bytes(whole[:cut])
        with opened(path) as again:
            ends = [*list(places.values())[1:], len(whole)]
            assert again.height == 19 + sum(end <= cut for end in ends)
            for block in branch.blocks[again.height + 1 :]:
                again.add(block)
        assert (path / files.JOURNAL).read_bytes() == whole
    damaged = bytearray(whole)
    damaged[places[25] + 100] ^= 1
    (path / files.JOURNAL).write_bytes(damaged)
    with opened(path) as again:
        assert again.height == 24


def test_a_journal_of_another_chain_does_not_count(tmp_path: Path) -> None:
    branch = Branch(6).grow(30)
    other = branch.forked(25, seed=8).grow(30)
    with opened(indexed(tmp_path / "x", branch, 20)) as follower:
        follower.add(branch.blocks[20])
    path = indexed(tmp_path / "y", other, 20)
    (path / files.JOURNAL).write_bytes((tmp_path / "x" / files.JOURNAL).read_bytes())
    with opened(path) as again:
        assert again.height == 19
    # Nor do blocks that were indexed meanwhile.
    indexed(tmp_path / "x", branch, 25)
    with opened(tmp_path / "x") as again:
        assert again.height == 24
        assert_same(again, branch.forked(5, 0), tmp_path / "fresh")


def test_a_full_disk_ends_it_with_the_last_block_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = Branch(7).grow(30)
    path = indexed(tmp_path / "x", branch, 20)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(path) as follower:
        follower.add(branch.blocks[20])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(ResourceError, match="No space left on device; the history is as"):
                follower.add(branch.blocks[21])
    with opened(path) as again:
        # The record may have reached the disk whole all the same.
        assert again.height in (20, 21)
        for block in branch.blocks[again.height + 1 :]:
            again.add(block)
        assert_same(again, branch, tmp_path / "fresh")


def test_a_block_is_written_and_read_the_same() -> None:
    for block in Branch(8).grow(12).blocks:
        again = unpacked(packed(block))
        assert (again.hash, again.previous, again.height) == (
            block.hash,
            block.previous,
            block.height,
        )
        for name, column in vars(block.content).items():
            if name == "pools" and column is not None:
                for part, flows in vars(column).items():
                    np.testing.assert_array_equal(getattr(again.content.pools, part), flows)
            elif column is not None:
                np.testing.assert_array_equal(getattr(again.content, name), column)


WORKER = """
import random, sys
from pathlib import Path
from history.branches import Branch
from history.test_follow import opened
path, seed, depth = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
branch = Branch(11).grow(160)
goal = branch.forked(depth, seed).grow(depth + 2)
with opened(path, retained=100, commit_after=20) as follower:
    print("open", flush=True)
    while follower.hash != goal.blocks[-1].hash:
        height = follower.height
        while height >= 0 and follower.hashes.get(height) != goal.blocks[height].hash:
            if height not in follower.hashes:
                break
            height -= 1
        follower.back_to(height)
        for block in goal.blocks[height + 1:]:
            follower.add(block)
            follower.commit_old()
"""


@pytest.mark.parametrize("rounds", [2, pytest.param(100, marks=pytest.mark.long)])
def test_kills_and_reorganisations_leave_what_a_fresh_index_has(
    rounds: int, tmp_path: Path
) -> None:
    draw = random.Random(3)
    branch = Branch(11).grow(160)
    path = indexed(tmp_path / "x", branch, 30)
    folder = str(Path(__file__).parent.parent)
    for k in range(rounds):
        depth = 1 + (k * 37) % 100
        arguments = [sys.executable, "-c", WORKER, str(path), str(100 + k), str(depth)]
        environment = os.environ | {"PYTHONPATH": folder}
        worker = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE)
        assert worker.stdout is not None
        worker.stdout.readline()
        try:
            worker.wait(draw.random() * 0.6)
        except subprocess.TimeoutExpired:
            worker.kill()
        worker.stdout.close()
        worker.wait()
        assert worker.returncode in (0, -9)
        subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
        goal = branch.forked(depth, 100 + k).grow(depth + 2)
        with opened(path, retained=100, commit_after=20) as follower:
            assert_same(follower, goal, tmp_path / f"fresh{k}")


def test_a_journal_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert Journal(tmp_path).read() == []

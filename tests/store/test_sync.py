"""Following a node: new blocks, branches left behind, interruptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from coinhaze.errors import InputError, NotAnswering, UsageError
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.nodes.best_chain import BlockMissing, check_follows
from coinhaze.store import sync as follow
from coinhaze.store.store import Store
from coinhaze.store.sync import catch_up, open_node
from coinhaze.store.verify import verify


class Chain:
    """A node with a chain of its own making: a coinbase a block."""

    def __init__(self, length: int) -> None:
        self.hashes = [f"a{height}" for height in range(length)]
        self.branches = 0
        self.fails_at = -1
        self.between: Callable[[], None] = lambda: None  # happens after each answer

    def fork(self, height: int, length: int) -> None:
        """Leave the blocks from a height on for as many others."""
        self.branches += 1
        name = f"branch{self.branches}-"
        self.hashes[height:] = [f"{name}{height + k}" for k in range(length)]

    def tip(self) -> tuple[int, str]:
        tip = len(self.hashes) - 1, self.hashes[-1]
        self.between()
        return tip

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        same = [h for h, name in headers.items() if self.hashes[h : h + 1] == [name]]
        self.between()
        return max(same, default=None)

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        for height in range(first, last + 1):
            if height == self.fails_at:
                raise InputError("the line went dead")
            if height >= len(self.hashes):
                raise BlockMissing(f"block {height} is not there yet")
            blocks, made, coins = Rows("blocks"), Rows("transactions"), Rows("outputs")
            name = self.hashes[height]
            previous = self.hashes[height - 1] if height else None
            check_follows(previous, before, f"block {height}")
            before = name
            blocks.add(height=height, hash=name, previous=previous, time=height)
            made.add(height=height, txid=f"tx-{name}", coinbase=True, position=0, time=height)
            coins.add(height=height, txid=f"tx-{name}", vout=0, spendable=True, value=50)
            self.between()
            yield Batch(gather([blocks, made, coins]))


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were to be made, none of which is."""
    made: list[float] = []
    monkeypatch.setattr(follow, "time", SimpleNamespace(sleep=made.append))
    return made


def digest_of(chain: Chain) -> str:
    chain.between = lambda: None
    with Store(None) as store:
        catch_up(store, chain, name="fresh")
        return store.digest()


def test_a_store_goes_on_where_it_stands(tmp_path: Path) -> None:
    chain = Chain(10)
    for length in (10, 10, 25):
        chain.hashes = [f"a{h}" for h in range(length)]
        with Store(tmp_path / "store") as store:
            before = len(store.headers())
            done = catch_up(store, chain, name="node")
            assert done.rows == 3 * (length - before)
            assert done.left_behind == 0
    with Store(tmp_path / "store") as store:
        assert store.digest() == digest_of(chain)
        assert any("by previous hash: passed" in line for line in verify(store))


def test_a_store_says_how_far_a_node_is_in_and_leaves_no_gap() -> None:
    with Store(None) as store:
        catch_up(store, Chain(10), name="node", last=7)
        assert [source.rows for source in store.sources()] == [8]
        with pytest.raises(UsageError, match="from 9 on would leave a gap; begin with 8"):
            catch_up(store, Chain(20), name="node", first=9)
        assert catch_up(store, Chain(20), name="node", first=8).last == 19


@pytest.mark.parametrize("depth", [1, 2, 6, 100, 999])
def test_a_branch_left_behind_is_replaced(tmp_path: Path, depth: int) -> None:
    chain = Chain(1100)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node")
        chain.fork(1100 - depth, depth + 1)
        done = catch_up(store, chain, name="node")
        assert done.left_behind == depth
        assert store.digest() == digest_of(chain)
        verify(store)


def test_a_shorter_branch_that_won_is_taken_too(tmp_path: Path) -> None:
    chain = Chain(20)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node")
        chain.fork(15, 2)
        catch_up(store, chain, name="node")
        assert store.digest() == digest_of(chain)


def test_a_replacement_that_fails_leaves_the_old_branch_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "ROWS", 6)  # two blocks a batch
    chain = Chain(30)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node")
        old = store.digest()
        chain.fork(20, 12)
        chain.fails_at = 27
        with pytest.raises(InputError, match="went dead"):
            catch_up(store, chain, name="node")
        assert store.digest() == old
        chain.fails_at = -1
        catch_up(store, chain, name="node")
        assert store.digest() == digest_of(chain)


def test_what_was_read_before_a_failure_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "ROWS", 6)
    chain = Chain(30)
    chain.fails_at = 21
    with Store(tmp_path / "store") as store:
        with pytest.raises(InputError, match="went dead"):
            catch_up(store, chain, name="node")
        assert max(store.headers()) >= 17
        chain.fails_at = -1
        assert catch_up(store, chain, name="node").rows < 45
        assert store.digest() == digest_of(chain)


def test_gaps_and_other_chains_are_refused(tmp_path: Path) -> None:
    chain = Chain(10)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node", first=4, last=6)
        assert sorted(store.headers()) == [4, 5, 6]
        with pytest.raises(UsageError, match="would leave a gap"):
            catch_up(store, chain, name="node", first=9)
        other = Chain(10)
        other.fork(0, 10)
        with pytest.raises(InputError, match="of another network"):
            catch_up(store, other, name="node")


@pytest.mark.parametrize("source", ["http://127.0.0.1:8332", "doge+http://127.0.0.1:1"])
def test_the_kind_of_a_node_must_be_said(source: str) -> None:
    with pytest.raises(UsageError, match="bitcoin, ethereum, monero, zcash"):
        open_node(source)


def test_progress_counts_the_blocks_that_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    chain = Chain(30)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node", last=9)
        catch_up(store, chain, name="node", progress=lambda *note: told.append(note))
    assert told == [(done, 20) for done in range(21)]


def test_the_first_block_read_must_follow_the_stored_tip(tmp_path: Path) -> None:
    """A chain reorganised between the search for the common ancestor and the first block."""
    chain = Chain(20)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node")
        chain.hashes += [f"a{h}" for h in range(20, 25)]
        left = [lambda: None, lambda: chain.fork(15, 12)]  # after tip; after common_ancestor

        def between() -> None:
            if left:
                left.pop(0)()

        chain.between = between
        done = catch_up(store, chain, name="node")
        assert not left
        assert done.left_behind == 5
        assert done.first == 15
        assert sorted(store.headers()) == list(range(27))
        assert store.digest() == digest_of(chain)
        verify(store)


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(k, marks=pytest.mark.long) for k in range(12, 40))]
)
def test_races_leave_a_store_equal_to_a_fresh_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forks, longer and shorter ones, after random answers; what is stored is always one branch."""
    random = Random(seed)
    monkeypatch.setattr(follow, "ROWS", random.choice([3, 9, 30]))
    chain = Chain(random.randint(5, 40))
    forks = random.randint(1, 6)

    def between() -> None:
        nonlocal forks
        if forks and random.random() < 0.1:
            forks -= 1
            depth = random.randint(1, len(chain.hashes) - 1)
            chain.fork(len(chain.hashes) - depth, random.randint(1, depth + 5))

    with Store(None) as store:
        for _ in range(3):
            chain.between = between
            catch_up(store, chain, name="node")
            links = store.ask("SELECT hash, previous FROM blocks ORDER BY height")
            assert all(link[1] == below[0] for below, link in pairwise(links))
        chain.between = lambda: None
        catch_up(store, chain, name="node")
        assert store.digest() == digest_of(chain)


class Vanishing(Chain):
    """A chain whose upper half goes away in mid-read, in a way that looks like damage."""

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        for batch in super().batches(first, last, before=before):
            yield batch
            if self.hashes[6] == "a6":
                self.fork(6, 6)
                raise InputError("receipts of another block")


def test_damage_that_a_vanishing_branch_looks_like_is_read_again(
    tmp_path: Path, pauses: list[float]
) -> None:
    chain = Vanishing(10)
    with Store(tmp_path / "store") as store:
        catch_up(store, chain, name="node")
        assert len(pauses) == 1
        assert store.digest() == digest_of(chain)
    whole = Chain(10)
    whole.fails_at = 7
    with Store(tmp_path / "other") as store, pytest.raises(InputError, match="went dead"):
        catch_up(store, whole, name="node")  # the same chain still: a definite error
    assert len(pauses) == 1


def test_a_chain_that_never_rests_is_given_up(tmp_path: Path, pauses: list[float]) -> None:
    chain = Chain(10)
    chain.between = lambda: chain.fork(5, 6)
    with Store(tmp_path / "store") as store:
        with pytest.raises(NotAnswering, match="the chain changed while it was read, 8 times"):
            catch_up(store, chain, name="node")
        assert len(pauses) == follow.ATTEMPTS - 1
        assert pauses[-1] > pauses[0]
        chain.between = lambda: None
        catch_up(store, chain, name="node")
        assert store.digest() == digest_of(chain)

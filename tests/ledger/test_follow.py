"""Following a node: new blocks, branches left behind, interruptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.follow import catch_up, open_node
from coinhaze.ledger.store import Store
from coinhaze.ledger.verify import verify


class Chain:
    """A node with a chain of its own making: a coinbase a block."""

    def __init__(self, length: int) -> None:
        self.hashes = [f"a{height}" for height in range(length)]
        self.fails_at = -1

    def fork(self, height: int, length: int) -> None:
        """Leave the blocks from a height on for as many others."""
        name = chr(ord(self.hashes[-1][0]) + 1)
        self.hashes[height:] = [f"{name}{height + k}" for k in range(length)]

    def tip(self) -> tuple[int, str]:
        return len(self.hashes) - 1, self.hashes[-1]

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        same = [h for h, name in headers.items() if self.hashes[h : h + 1] == [name]]
        return max(same, default=None)

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        for height in range(first, last + 1):
            if height == self.fails_at:
                raise InputError("the line went dead")
            blocks, made, coins = Rows("blocks"), Rows("transactions"), Rows("outputs")
            name = self.hashes[height]
            before = self.hashes[height - 1] if height else None
            blocks.add(height=height, hash=name, previous=before, time=height)
            made.add(height=height, txid=f"tx-{name}", coinbase=True, position=0, time=height)
            coins.add(height=height, txid=f"tx-{name}", vout=0, spendable=True, value=50)
            yield Batch(gather([blocks, made, coins]))


def digest_of(chain: Chain) -> str:
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
        assert any("follow the one below" in line for line in verify(store))


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
    from coinhaze.ledger import follow

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
    from coinhaze.ledger import follow

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

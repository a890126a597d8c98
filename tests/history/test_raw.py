"""Raw blocks of a node become a history straight from its files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, cast

import pytest

import coinhaze
from coinhaze import History, LedgerError
from coinhaze.formats.bitcoin_raw import chain as raw_chain
from coinhaze.formats.bitcoin_raw.chain import RawChain
from coinhaze.history import files
from coinhaze.history.index import sources
from coinhaze.ledger.coin_blocks import CoinBlocks
from formats.block_samples import (
    block,
    coinbase,
    file_of,
    hide,
    name,
    pay,
    pay_to_key_hash,
    spend,
    transaction,
    twice,
)
from history.test_files import content
from nodes.daemons import bitcoin_daemon

NEVER = bytes.fromhex("6a01ff")  # OP_RETURN


def chain(number: int, *, salt: int = 0, common: int = 0) -> list[bytes]:
    """Make blocks from the first on, each of which spends what the two before made."""
    blocks: list[bytes] = []
    previous = bytes(32)
    made: list[bytes] = []
    for height in range(number):
        mark = salt if height >= common else 0
        first = coinbase(
            height,
            pay(5000 + mark, pay_to_key_hash(1)),
            pay(77, pay_to_key_hash(2)),
            pay(9, NEVER),
        )
        inside = [first]
        if height > 2:
            coins = [(twice(made[-2]), 0), (twice(made[-1]), 1)]
            worth = 4000 if height % 2 else 5077
            outs = [pay(worth - 1000, pay_to_key_hash(3)), pay(900, pay_to_key_hash(4))]
            inside.append(transaction([spend(coin) for coin in coins], outs))
        made.append(first)
        blocks.append(block(previous, inside))
        previous = name(blocks[-1])
    return blocks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "blocks").mkdir()
    return tmp_path / "blocks"


def test_files_in_any_order_give_what_their_ledger_gives(folder: Path, tmp_path: Path) -> None:
    blocks = chain(30)
    stale = chain(21, salt=1, common=20)[20]  # a block that lost a race
    shuffled = [*blocks[:10], blocks[12], blocks[10], blocks[11], *blocks[13:20], stale]
    (folder / "blk00000.dat").write_bytes(file_of(shuffled))
    key = bytes(range(1, 9))
    (folder / "blk00001.dat").write_bytes(file_of(blocks[20:]))
    paths = sorted(folder.glob("blk*.dat"))
    straight = History.index(tmp_path / "raw", paths)
    assert straight.manifest.complete
    assert (straight.manifest.first_height, straight.manifest.last_height) == (0, 29)
    assert {c.name: c.status for c in straight.completeness.checks}[
        "Merkle root of the transactions"
    ] == "passed"
    ledger = coinhaze.read(paths, complete=True)
    assert isinstance(ledger, coinhaze.CoinLedger)
    History.index(tmp_path / "ledger", ledger)
    ours, theirs = content(tmp_path / "raw"), content(tmp_path / "ledger")
    assert ours == theirs
    for path in paths:  # the same files, hidden by a key
        path.write_bytes(hide(path.read_bytes(), key))
    (folder / "xor.dat").write_bytes(key)
    History.index(tmp_path / "hidden", paths, format="bitcoin-blocks")
    assert content(tmp_path / "hidden") == theirs


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_byte(
    threads: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = chain(40)
    for k in range(4):  # each file has blocks from everywhere
        (folder / f"blk{k:05}.dat").write_bytes(file_of(blocks[3 - k :: 4]))
    paths = sorted(folder.glob("blk*.dat"))
    History.index(tmp_path / "one", coinhaze.read(paths, complete=True))
    monkeypatch.setattr(raw_chain, "BATCH_BYTES", 700)  # a few blocks
    monkeypatch.setattr(sources, "workers_for", lambda *_: threads)
    read, most, lock = RawChain._read_bundle, [0, 0], Lock()

    def counted(self: RawChain, order: Sequence[tuple[int, int]]) -> CoinBlocks:
        with lock:
            most[0] += 1
        try:
            time.sleep(0.01 * (order[0][0] % 3))  # what is read first is not done first
            return read(self, order)
        finally:
            with lock:
                most[1] = max(most)
                most[0] -= 1

    monkeypatch.setattr(RawChain, "_read_bundle", counted)
    History.index(tmp_path / "x", paths)
    assert content(tmp_path / "x") == content(tmp_path / "one")
    assert most[1] <= threads
    # The first fault of the chain is told, whichever is found first.
    bad = block(name(blocks[9]), [coinbase(10), transaction([spend((b"\5" * 32, 0))], [
        pay(1, pay_to_key_hash(1))])])  # fmt: skip
    after = [bad]
    for height in range(11, 25):
        after.append(block(name(after[-1]), [coinbase(height)]))
    wrong = bytearray(after[-1])
    wrong[-1] ^= 1
    (folder / "blk00000.dat").write_bytes(file_of([bytes(wrong), *after[:-1], *blocks[:10]]))
    with pytest.raises(LedgerError, match=r"block 10: .*not there"):
        History.index(tmp_path / "y", folder / "blk00000.dat")


def test_blocks_that_come_later_are_appended(folder: Path, tmp_path: Path) -> None:
    blocks = chain(30)
    (folder / "blk00000.dat").write_bytes(file_of(blocks))
    History.index(tmp_path / "fresh", folder / "blk00000.dat")
    path = tmp_path / "x"
    for end in (10, 11, 30):
        (folder / "blk00000.dat").write_bytes(file_of(blocks[:end]))
        assert History.index(path, folder / "blk00000.dat").manifest.last_height == end - 1
    assert content(path) == content(tmp_path / "fresh")
    before = files.read_manifest(path)
    assert History.index(path, folder / "blk00000.dat").manifest == before
    other = chain(32, salt=3, common=25)
    (folder / "blk00000.dat").write_bytes(file_of(other))
    with pytest.raises(LedgerError, match="another chain than that of the history"):
        History.index(path, folder / "blk00000.dat")
    assert files.read_manifest(path) == before


def test_what_is_missing_or_does_not_link_is_refused_by_height(
    folder: Path, tmp_path: Path
) -> None:
    blocks = chain(12)
    file = folder / "blk00000.dat"
    file.write_bytes(file_of([*blocks[:5], *blocks[6:]]))
    with pytest.raises(LedgerError, match="block 5 is missing"):
        History.index(tmp_path / "x", file)
    assert not files.is_history(tmp_path / "x")
    wrong = bytearray(blocks[7])
    wrong[-1] ^= 1
    file.write_bytes(file_of([*blocks[:7], bytes(wrong), *blocks[8:]]))
    with pytest.raises(LedgerError, match="block 7: the transactions do not give the Merkle root"):
        History.index(tmp_path / "x", file)
    spent = transaction([spend((b"\5" * 32, 0))], [pay(1, pay_to_key_hash(1))])
    bad = block(name(blocks[-1]), [coinbase(12), spent])
    file.write_bytes(file_of([*blocks, bad]))
    with pytest.raises(LedgerError, match=r"block 12: .* spends a coin that is not there"):
        History.index(tmp_path / "x", file)
    above = transaction([spend((twice(coinbase(0)), 0))], [pay(51, pay_to_key_hash(1))])
    first = block(bytes(32), [coinbase(0), above])
    file.write_bytes(file_of([first]))
    with pytest.raises(LedgerError, match=r"block 0: .*(outputs above inputs|not there)"):
        History.index(tmp_path / "x", file)


def test_a_chain_of_samples_is_linked() -> None:
    blocks = chain(5)
    assert all(b[4:36] == name(a) for a, b in pairwise(blocks))


def test_a_real_node_files_give_its_unspent_coins(tmp_path: Path) -> None:
    with bitcoin_daemon("bitcoind") as node:
        node.mine(110)
        for _ in range(3):
            node.ask("sendtoaddress", node.text("getnewaddress"), 3)
            node.mine(2)
        told = cast(dict[str, Any], node.ask("gettxoutsetinfo", "none"))
        for file in (node.folder / "regtest" / "blocks").glob("*.dat"):
            shutil.copy(file, tmp_path)
    history = History.index(tmp_path / "x.history", tmp_path / "blk00000.dat")
    scores = history.score(accuracy="exact")
    assert history.manifest.last_height == told["height"]
    assert len(scores) == told["txouts"]
    assert round(scores.coins.value.sum() / 1e8, 8) == float(told["total_amount"])

"""A UTXO snapshot that a real node writes, beside its blocks: the same ledger as with undo data."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import coinhaze
from coinhaze.errors import CoinhazeError
from coinhaze.formats.bitcoin_raw import snapshot as reader
from coinhaze.ledger.coins import CoinLedger
from coinhaze.options import View
from formats.block_samples import REGTEST, frame
from nodes.daemons import Daemon

SENT = 6
KINDS = ("legacy", "p2sh-segwit", "bech32", "bech32m")


@pytest.fixture(scope="module")
def dumped(bitcoin: Daemon, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder with a snapshot, the blocks above it, and the node's own files; and its height."""
    folder = tmp_path_factory.mktemp("dumped")
    bitcoin.mine(110)
    # Outputs of every kind and of uneven amounts lie before the snapshot, and are spent after it.
    earlier = []
    for kind in KINDS:
        addresses = [bitcoin.text("getnewaddress", "", kind) for _ in range(SENT)]
        amounts = {to: f"0.1{k * 123:07}" for k, to in enumerate(addresses)}
        bitcoin.ask("sendmany", "", amounts)
        bitcoin.mine(1)
        coins = bitcoin.ask("listunspent", 1, 9999999, addresses)
        assert isinstance(coins, list)
        assert len(coins) == SENT
        earlier += [{"txid": coin["txid"], "vout": coin["vout"]} for coin in coins]
        # Locked, so that the node's own choice of coins, which is random, leaves them alone.
        bitcoin.ask("lockunspent", False, earlier[-SENT:])
    descriptor = bitcoin.ask("getdescriptorinfo", "pk(02" + "79be667ef9dcbbac55a06295ce870b07"
                             "029bfcdb2dce28d959f2815b16f81798)")  # fmt: skip
    assert isinstance(descriptor, dict)
    bitcoin.ask("generatetodescriptor", 1, descriptor["descriptor"])
    height = bitcoin.ask("getblockcount")
    assert isinstance(height, int)
    bitcoin.ask("dumptxoutset", str(folder / "utxo.dat"), "latest")
    for k in range(8):
        to = bitcoin.text("getnewaddress", "", KINDS[k % 4])
        bitcoin.ask("sendtoaddress", to, f"0.5{k}", "", "", True)
        bitcoin.ask("sendall", [to], None, "unset", None, {"inputs": earlier[k::8]})
        bitcoin.mine(k % 2)
    bitcoin.mine(1)
    tip = bitcoin.ask("getblockcount")
    assert isinstance(tip, int)
    hashes = [bitcoin.text("getblockhash", h) for h in range(height + 1, tip + 1)]
    octets = [bytes.fromhex(bitcoin.text("getblock", h, 0)) for h in hashes]
    (folder / "blk00000.dat").write_bytes(b"".join(frame(o, REGTEST) for o in octets))
    shutil.copytree(bitcoin.folder / "regtest" / "blocks", folder / "whole", ignore=_no_index)
    return folder, height


def _no_index(folder: str, names: list[str]) -> list[str]:
    return ["index"]


def test_the_node_says_the_same_of_it(bitcoin: Daemon, dumped: tuple[Path, int]) -> None:
    folder, height = dumped
    header = reader.read_header(folder / "utxo.dat")
    assert header.network.name == "bitcoin regtest"
    assert header.block == bitcoin.text("getblockhash", height)
    assert header.coins > len(KINDS) * SENT


@pytest.mark.parametrize("view", ["coin", "address"])
def test_blocks_with_it_score_as_with_undo_data(dumped: tuple[Path, int], view: View) -> None:
    folder, height = dumped
    files = [folder / "blk00000.dat", folder / "utxo.dat"]
    with pytest.raises(CoinhazeError, match=f"rollback={height}"):
        coinhaze.read(files[0])
    read = coinhaze.read(files)
    known = coinhaze.read(folder / "whole" / "blk00000.dat", first=height + 1)
    assert isinstance(read, CoinLedger)
    assert isinstance(known, CoinLedger)
    earlier = known.output_tx < int((~known.inside).sum())
    assert earlier.sum() >= len(KINDS) * SENT  # coins of before the window are spent
    ours, theirs = read.tables(), known.tables()
    assert {n: t.to_pylist() for n, t in ours.items()} == {
        n: t.to_pylist() for n, t in theirs.items()
    }
    one, other = (coinhaze.score(ledger, view=view).to_arrow() for ledger in (read, known))
    assert len(one)
    assert one.equals(other)


def test_the_snapshot_that_the_message_asks_for_mends_it(
    bitcoin: Daemon, dumped: tuple[Path, int], tmp_path: Path
) -> None:
    """One of the tip lacks what the blocks spend; the command in the message writes the right."""
    folder, height = dumped
    blocks, wrong, right = folder / "blk00000.dat", tmp_path / "wrong.dat", tmp_path / "right.dat"
    bitcoin.ask("dumptxoutset", str(wrong), "latest")
    with pytest.raises(CoinhazeError, match=f"rollback={height}"):
        coinhaze.read([blocks, wrong])
    bitcoin.ask("dumptxoutset", str(right), "", {"rollback": height})
    assert right.read_bytes() == (folder / "utxo.dat").read_bytes()
    assert len(coinhaze.score([blocks, right]))

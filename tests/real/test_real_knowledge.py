"""Heuristics measured on real sets whose truth is known, and those sets scored with and without."""

from __future__ import annotations

import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze.graph.clusters.change import MAX_OUTPUTS, _pays_itself, change_outputs
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.clusters.heuristics import heuristic
from coinhaze.graph.clusters.merge import cluster_labels
from coinhaze.graph.clusters.services import payout_links
from coinhaze.ledger import CoinLedger

Unpack = Callable[[str], Path]


@pytest.fixture
def unpacked(data: Path, tmp_path: Path) -> Unpack:
    """Unpack an archive of a set into a folder."""

    def unpack(pattern: str) -> Path:
        archive = next(data.glob(pattern))
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(tmp_path / "set")
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(tmp_path / "set", filter="data")
        return tmp_path / "set"

    return unpack


def read(paths: list[Path]) -> CoinLedger:
    ledger = coinhaze.read(sorted(paths))
    assert isinstance(ledger, CoinLedger)
    return ledger


def listed(path: Path) -> set[str]:
    return {line.split(":::")[0] for line in path.read_text().splitlines() if line}


def found(ledger: CoinLedger, kind: CoinJoin) -> set[str]:
    return {ledger.txids[k].as_py() for k in np.flatnonzero(coinjoin_kinds(ledger) == kind)}


def sure(right: int, guesses: int) -> float:
    return (right + 1) / (guesses + 2)


def test_whirlpool_is_reported_as_surely_as_we_say(unpacked: Unpack) -> None:
    folder = unpacked("btc_coinjoin_dumplings/*sw*.zip")
    ledger = read(list(folder.rglob("*.txt")))
    facts = ledger.facts()
    assert (facts["transactions"], facts["inputs"], facts["outputs"]) == (4_864, 25_925, 23_302)
    mixes = listed(next(folder.rglob("SamouraiCoinJoins.txt")))
    guesses = found(ledger, CoinJoin.whirlpool)
    assert mixes <= guesses
    assert heuristic("whirlpool").confidence == pytest.approx(sure(len(mixes), len(guesses)))
    # What the lists leave out looks like mixes in every way: most spend mixes or premixes listed.
    known = mixes | listed(next(folder.rglob("SamouraiTx0s.txt")))
    assert sum(spends(ledger, known)[x] for x in guesses - mixes) == 228
    assert len(guesses - mixes) == 327
    others = found(ledger, CoinJoin.wasabi1) | found(ledger, CoinJoin.wasabi2)
    assert not others
    assert len(found(ledger, CoinJoin.joinmarket)) == 2
    scores = coinhaze.score(ledger)
    assert scores.summary().bits_mean == pytest.approx(2.8375, abs=1e-4)


def spends(ledger: CoinLedger, txids: set[str]) -> dict[str, bool]:
    """Tell which transactions spend a coin of the given ones."""
    names = ledger.txids.to_pylist()
    given = np.array([name in txids for name in names])
    hit = np.zeros(len(names), dtype=np.bool_)
    hit[ledger.input_tx[given[ledger.output_tx[ledger.input_output]]]] = True
    return dict(zip(names, hit.tolist(), strict=True))


def test_wasabi_1_is_reported_as_surely_as_we_say(unpacked: Unpack) -> None:
    folder = unpacked("btc_coinjoin_dumplings/*ww1*.zip")
    ledger = read(list(folder.rglob("*.txt")))
    facts = ledger.facts()
    assert (facts["transactions"], facts["inputs"], facts["outputs"]) == (550, 15_205, 21_283)
    mixes = listed(next(folder.rglob("WasabiCoinJoins.txt")))
    guesses = found(ledger, CoinJoin.wasabi1)
    assert guesses == mixes
    assert len(found(ledger, CoinJoin.joinmarket)) == 12
    assert heuristic("wasabi1").confidence == pytest.approx(sure(len(mixes), len(guesses)))
    coins = coinhaze.score(ledger).summary().bits_mean
    merged = coinhaze.score(ledger, view="address", clusters="common-input").summary().bits_mean
    apart = coinhaze.score(ledger, view="address", clusters="change").summary().bits_mean
    # Taking CoinJoins for one owner's makes one entity of all who mixed, and hides what they did.
    assert (coins, merged, apart) == pytest.approx((6.3769, 1.8308, 6.3775), abs=1e-4)


def test_wasabi_2_and_common_inputs_are_reported_as_surely_as_we_say(unpacked: Unpack) -> None:
    folder = unpacked("btc_wasabi2_emulation_truth/*.tar.xz")
    ledger = read(list(folder.rglob("block_*.json")))
    wallets = json.loads(next(folder.rglob("wallets_info.json")).read_text())
    holder = {address: w for w, addresses in wallets.items() for address in addresses}
    owners = [holder.get(name, "the funder") for name in ledger.owners.to_pylist()]
    payers: dict[int, set[str]] = {}
    count: dict[int, int] = {}
    for tx, output in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        payers.setdefault(tx, set()).add(owners[ledger.output_owner[output]])
        count[tx] = count.get(tx, 0) + 1
    joint = {tx for tx, n in count.items() if n > 1}
    truth = {tx for tx in joint if len(payers[tx]) > 1}
    guesses = {int(k) for k in np.flatnonzero(coinjoin_kinds(ledger) == CoinJoin.wasabi2)}
    assert guesses == truth
    assert heuristic("wasabi2").confidence == pytest.approx(sure(len(truth), len(guesses)))
    plain = joint - guesses
    right = sum(len(payers[tx]) == 1 for tx in joint)
    assert heuristic("common-input").confidence == pytest.approx(sure(right, len(joint)))
    right = sum(len(payers[tx]) == 1 for tx in plain)
    careful = heuristic("common-input-no-coinjoins").confidence
    assert careful == pytest.approx(sure(right, len(plain)))


def test_a_mempool_has_few_coinjoins(data: Path) -> None:
    ledger = read(list((data / "btc_mempool_esplora").glob("*.xz")))
    counts = {kind.name: len(found(ledger, kind)) for kind in CoinJoin if kind}
    assert counts == {"whirlpool": 8, "wasabi2": 2, "wasabi1": 0, "joinmarket": 0}


def test_change_is_reported_as_surely_as_we_say(data: Path) -> None:
    ledger = read(list((data / "btc_utxo_100000_104000").glob("[ve]*.csv.gz")))
    # Inputs spent together elsewhere give change away (Möser and Narayanan 2022): of a payment's
    # outputs exactly one belongs to the cluster of its inputs.
    owner = ledger.output_owner[ledger.input_output]
    label = cluster_labels(ledger, owner, ledger.input_tx)
    payer = np.full(len(ledger.txids), -1)
    payer[ledger.input_tx] = label[owner]
    made = np.flatnonzero(ledger.inside[ledger.output_tx] & ledger.output_spendable)
    tx = ledger.output_tx[made]
    back = label[ledger.output_owner[made]] == payer[tx]
    outputs = np.bincount(tx, minlength=len(payer))
    known = (np.bincount(tx[back], minlength=len(payer)) == 1) & ~_pays_itself(ledger)
    known &= (outputs >= 2) & (outputs <= MAX_OUTPUTS)
    truth = set(made[back & known[tx]].tolist())
    guesses = [int(k) for k in change_outputs(ledger) if known[ledger.output_tx[k]]]
    right = sum(k in truth for k in guesses)
    assert (right, len(guesses), len(truth)) == (107, 109, 251)
    assert heuristic("change").confidence == pytest.approx(sure(right, len(guesses)))
    assert not coinjoin_kinds(ledger).any()


POOLS = {"dai_100": (5.5101, 4.7394), "dai_10000": (6.5448, 4.3417), "wbtc_10": (8.6980, 5.6428)}


@pytest.mark.parametrize("pool", list(POOLS))
def test_a_tornado_pool_is_scored_with_and_without_knowledge(data: Path, pool: str) -> None:
    files = sorted((data / "tornado_events").glob(f"*_1_{pool}.json.gz"))
    ledger = coinhaze.read([str(f) for f in files])
    assert isinstance(ledger, coinhaze.AccountLedger)
    plain = coinhaze.score(ledger, time="temporal", accuracy=1e-7)
    links = payout_links(ledger, [f"pool:{pool}"], last=1, fee=0.1)
    known = coinhaze.score(ledger, time="temporal", accuracy=1e-7, links=links)
    means = (plain.summary().bits_mean, known.summary().bits_mean)
    assert means == pytest.approx(POOLS[pool], abs=1e-4)
    short = [n for n in plain.notes if "deposits are missing" in n]
    assert bool(short) == (pool == "dai_10000")


def test_leaves_of_all_pools_are_there_from_the_first(data: Path) -> None:
    for file in sorted((data / "tornado_events").glob("deposits_*.json.gz")):
        from coinhaze.formats.ethereum import tornado

        leaves = [
            int(sender.as_py().rpartition(":")[2])
            for batch in tornado.batches(file)
            for sender in batch.tables["transfers"]["sender"]
        ]
        assert sorted(leaves) == list(range(len(leaves)))

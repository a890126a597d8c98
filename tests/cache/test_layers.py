"""What is kept and opened again is what was built, to the last bit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from cache.layers_twin import differences
from coinhaze import AccountLedger, CoinLedger, absorbing_chain, transaction_graph
from coinhaze.cache import place as kept_place
from coinhaze.cache.layers import LedgerCache, open_cached
from coinhaze.cache.tree import Packer, Unpacker
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.graph.build import transaction_graph as build_graph
from coinhaze.ledger import Ledger, write_folder
from coinhaze.ledger.links import Link
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.solve.local.origins import local_row
from coinhaze.solve.local.row import BoundedChain
from coinhaze.solve.structure.structure import Structure
from properties import strategies as ledgers
from properties.comparison import profile


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def town(place: Path, name: str = "town", *, transactions: int = 60) -> Path:
    return write_folder(simulate_town(transactions=transactions), place / name)


# ---------------------------------------------------------------- the tree, in memory


def through_bytes(layers: Sequence[Any]) -> list[Any]:
    """Write values layer by layer into memory and read them back, as files would be."""
    below: list[Sequence[object]] = []
    back: list[Any] = []
    read: list[Sequence[object]] = []
    for value in layers:
        data = bytearray(64)

        def put(piece: Any, data: bytearray = data) -> list[int]:
            first = len(data)
            data.extend(memoryview(piece).cast("B"))
            size = len(data) - first
            data.extend(bytes(-len(data) % 64))
            return [first, size]

        packer = Packer(put, below)
        tree = packer.pack(value)
        unpacker = Unpacker(memoryview(data), read)
        back.append(unpacker.unpack(tree))
        below.append(packer.objects)
        read.append(unpacker.objects)
    return back


def check(ledger: Ledger, *, chain: dict[str, Any] | None = None, **graph: Any) -> None:
    """Keep everything of a ledger and compare it, and what is asked of it, with what was built."""
    try:
        built = absorbing_chain(transaction_graph(ledger, **graph), **(chain or {}))
        scores = coinhaze.score(built, renyi=(2.0,))
    except CoinhazeError:
        return  # settings that this ledger has no answer for
    made = [ledger, built.graph, built, BoundedChain.of(built), scores]
    back = through_bytes(made)
    for value, again in zip(made, back, strict=True):
        assert differences(value, again) == []
    assert back[1].ledger is back[0]
    assert back[2].graph is back[1]
    assert back[4].chain is back[2]
    _ask_both(built, back[2], back[3])


def _ask_both(built: coinhaze.AbsorbingChain, again: coinhaze.AbsorbingChain, local: Any) -> None:
    structures = Structure(built), Structure(again, bounded=local)
    names = built.graph.names.of(np.arange(len(built))).to_pylist()
    assert again.graph.names.of(np.arange(len(again))).to_pylist() == names
    assert [again.graph.names.nodes(n).tolist() for n in names] == [
        built.graph.names.nodes(n).tolist() for n in names
    ]
    assert differences(coinhaze.score(built).bits, coinhaze.score(again).bits) == []
    for node in range(0, len(built), 3):
        one, other = (_row(structure, node) for structure in structures)
        assert one == other


def _row(chain: Structure, node: int) -> object:
    try:
        row = local_row(chain, node, width=0.01)
        found = coinhaze.origins(chain, node)
    except CoinhazeError as error:
        return str(error)
    return (row.bits_low, row.bits_high, found.sources().to_pylist(), found.flow().to_pylist())


@given(st.data())
@profile(25)
def test_accounts_of_any_amounts_come_back(data: st.DataObject) -> None:
    rows = data.draw(ledgers.transfers())
    check(
        AccountLedger.from_transfers(rows),
        time=data.draw(st.sampled_from(["stationary", "temporal"])),
        mint=data.draw(st.sampled_from(["each", "one"])),
        clusters=data.draw(st.one_of(st.none(), ledgers.clusters(ledgers.ACCOUNTS))),
    )


@given(st.data())
@profile(25)
def test_coins_and_pools_come_back_in_every_view(data: st.DataObject) -> None:
    rows = data.draw(ledgers.transactions(pools=data.draw(st.booleans())))
    view, time = data.draw(
        st.sampled_from([("coin", None), ("address", "stationary"), ("address", "temporal")])
    )
    clusters = st.one_of(st.none(), ledgers.clusters(ledgers.ADDRESSES))
    check(
        CoinLedger.from_transactions(rows),
        view=view,
        time=time,
        opening=data.draw(st.sampled_from(["surplus", "observed"])),
        pools=data.draw(st.sampled_from(["each", "merged"])),
        clusters=None if view == "coin" else data.draw(clusters),
    )


@given(st.data())
@profile(15)
def test_rings_come_back(data: st.DataObject) -> None:
    rows = data.draw(ledgers.ring_transactions())
    chances = data.draw(st.one_of(st.none(), ledgers.posteriors(rows)))
    if chances is not None:
        rows = [
            row | {"posteriors": [[float(p) for p in ring] for ring in each]}
            for row, each in zip(rows, chances, strict=True)
        ]
    check(CoinLedger.from_transactions(rows))


@given(st.data())
@profile(12)
def test_what_an_observer_knows_comes_back(data: st.DataObject) -> None:
    ledger = CoinLedger.from_transactions(data.draw(ledgers.transactions(pools=True)))
    graph = build_graph(ledger)
    names = graph.names.of(np.arange(len(graph))).to_pylist()
    knows: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"listed": names[:2]},
                {"listed": names[:1], "policy": "poison"},
                {"policy": "uniform"},
                {"history": {"pool:sprout": [1, 2, 3]}},
                {"links": {f"{ledger.txids[-1].as_py()}:0": {names[0]: 1.0}}},
            ]
        )
    )
    check(ledger, chain=knows)


# ---------------------------------------------------------------- on disk


def test_what_is_opened_is_what_was_built(tmp_path: Path) -> None:
    path = town(tmp_path)
    built = LedgerCache(path).build()
    opened = LedgerCache(path).open()
    assert opened is not None
    assert built.is_cached
    for part in ("ledger", "graph", "chain", "scores", "facts", "digest"):
        assert differences(getattr(built, part), getattr(opened, part), part) == []
    assert opened.graph.ledger is opened.ledger
    assert opened.scores.chain is opened.chain


def test_another_process_opens_it_and_scores_the_same(tmp_path: Path) -> None:
    path = town(tmp_path)
    built = LedgerCache(path).build()
    opened = LedgerCache(path).open()
    assert opened is not None
    again = coinhaze.score(opened.chain)
    assert again.bits.tobytes() == built.scores.bits.tobytes()
    # Arrays are views of the mapped file, and the file is never written to.
    assert not opened.graph.tail.flags.owndata
    before = {f: f.read_bytes() for f in tmp_path.rglob("data")}
    opened.chain.Q.data[:] = 0.5
    assert {f: f.read_bytes() for f in tmp_path.rglob("data")} == before


def test_a_week_of_accounts_with_wide_amounts_is_retained(tmp_path: Path) -> None:
    path = write_folder(simulate_week("dai-week", size=0.01), tmp_path / "dai")
    built = LedgerCache(path, time="temporal").build()
    assert built.graph.amounts is not None
    assert built.graph.amounts.digits.shape[1] > 1
    opened = LedgerCache(path, time="temporal").open()
    assert opened is not None
    assert differences(built.chain, opened.chain) == []
    assert differences(built.scores, opened.scores) == []


def test_policies_of_one_view_share_the_ledger_on_disk(tmp_path: Path) -> None:
    path = town(tmp_path)
    plain = LedgerCache(path).build()
    layers = set(os.listdir(tmp_path / "town.kept"))
    even = LedgerCache(path, policy="uniform").build()
    assert len(set(os.listdir(tmp_path / "town.kept")) - layers) == 3  # chain, local, scores
    assert not np.array_equal(plain.scores.bits, even.scores.bits)


def test_settings_are_distinguished_and_defaults_are_not(tmp_path: Path) -> None:
    path = town(tmp_path)

    def keys(**chosen: Any) -> list[str]:
        return LedgerCache(path, **chosen).keys

    assert keys() == keys(view="coin", opening="surplus", policy=None, top_up=False)
    assert keys(view="address") == keys(view="address", time="stationary")
    apart = [
        keys(), keys(view="address"), keys(view="address", time="temporal"), keys(pools="merged"),
        keys(listed=["a"]), keys(listed=["b"]), keys(links={"a": {"b": 1.0}}),
        keys(links={"a": Link({"b": 1.0}, 0.5)}), keys(opening={"a": 1}),
        keys(view="address", clusters={"a": "b"}), keys(history={"sapling": [1, 2]}),
    ]  # fmt: skip
    assert len({tuple(k) for k in apart}) == len(apart)


def test_a_changed_ledger_is_another_one(tmp_path: Path) -> None:
    path = town(tmp_path)
    first = LedgerCache(path).build()
    write_folder(simulate_town(transactions=90), path)
    assert LedgerCache(path).facts() is None
    second = open_cached(path)
    assert second.digest != first.digest
    # Of the ledger as it was nothing is left on disk.
    assert len(os.listdir(tmp_path / "town.kept")) == 5


def test_large_files_are_reported_by_size_time_and_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_place, "DIGESTED", 0)
    path = tmp_path / "t.csv"
    path.write_text("from,to,amount\na,b,1\n")
    first = kept_place.digest_of_sources([path])
    assert kept_place.digest_of_sources([path]) == first
    path.write_text("from,to,amount\na,b,2\n")  # of the same size
    second = kept_place.digest_of_sources([path])
    assert second != first
    os.utime(path, ns=(0, 2**62))  # a time yet to come: the content counts
    assert kept_place.digest_of_sources([path]) not in (first, second)


def test_the_narrowest_scores_are_opened(tmp_path: Path) -> None:
    path = town(tmp_path, transactions=400)
    LedgerCache(path).build(accuracy="preview")
    facts = LedgerCache(path).facts()
    assert facts is not None
    assert facts["estimate"]
    LedgerCache(path).build(accuracy="exact")
    opened = LedgerCache(path).open()
    assert opened is not None
    assert not opened.facts["estimate"]
    assert opened.scores.bits_error is None


def test_few_settings_are_retained_the_last_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_place, "MAX_LEFT", 3)
    path = town(tmp_path)
    names = simulate_town(transactions=60).owners.to_pylist()[:4]
    for name in names:
        LedgerCache(path, listed=[name]).build()
    found = [LedgerCache(path, listed=[name]).facts() is not None for name in names]
    assert found[-1]
    assert not found[0]
    # Three scores, each with its chain and bounds, on one graph of one ledger.
    assert len(os.listdir(tmp_path / "town.kept")) == 3 * 3 + 2
    assert found == [False, True, True, True]


def test_what_cannot_be_retained_is_refused_with_words(tmp_path: Path) -> None:
    path = town(tmp_path)
    with pytest.raises(UsageError, match="no chain to keep"):
        LedgerCache(path, policy="fifo")
    with pytest.raises(UsageError, match="unknown setting 'colour'"):
        LedgerCache(path, colour="red")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="cannot be cached"):
        LedgerCache(path, policy=lambda graph: graph)
    with pytest.raises(UsageError, match="sinks are cached"):
        LedgerCache(path).build(nodes="all")
    with pytest.raises(InputError, match="no such file"):
        LedgerCache(tmp_path / "nothing.csv")
    transfers = tmp_path / "t.csv"
    transfers.write_text("from,to,amount\na,b,1\n")
    LedgerCache(transfers).build()
    with pytest.raises(UsageError, match="does not fit"):
        LedgerCache(transfers, view="coin").open()


def test_where_nothing_can_be_written_it_is_built_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = town(tmp_path)
    (tmp_path / "town.kept").write_text("a file where the folder would be")
    first = LedgerCache(path).build()
    assert first.is_cached  # in the cache folder
    assert (tmp_path / "cache" / "coinhaze" / "kept").is_dir()
    assert LedgerCache(path).open() is not None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    second = LedgerCache(path).build()
    assert not second.is_cached
    assert "nothing is cached" in second.notes[0]
    assert second.scores.bits.tobytes() == first.scores.bits.tobytes()

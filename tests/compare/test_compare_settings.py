"""Ledgers of a comparison with settings of their own, and notes that reach every output."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.compare import run as compare_run
from coinhaze.compare.ledgers import ComparedLedger, ScoringSettings, command_of, problems_of
from coinhaze.compare.report import MANIFEST, with_added, write_manifest, write_report
from coinhaze.compare.rows import row_of
from coinhaze.compare.run import score_ledgers
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.ledger import AccountLedger, write_folder
from coinhaze.measures import Scores
from coinhaze.measures.scores import not_reached
from coinhaze.report.score_files import ScoreFile, read_score_file
from store.made_stores import Chain
from vectors import coins

TRANSFERS = "from,to,amount\nalice,shop,5\nbob,shop,3\nshop,carol,6\nbob,dave,2\n"
QUICK = ScoringSettings(walks=20)


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    path = tmp_path / "transfers.csv"
    path.write_text(TRANSFERS)
    return path


@pytest.fixture
def blind(tmp_path: Path) -> Path:
    """A store in which u and v spend coins of unknown value, w what both paid; a is known."""
    chain = Chain(first=9)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.pay("u", [("x", 0, None), ("y", 1, None)], [("bob", 30), ("bob", 5)])
    chain.pay("v", [("z", 0, None)], [("cat", 10)])
    chain.block()
    chain.pay("w", [("u", 0, None), ("v", 0, None)], [("dan", 29), ("dan", 11)])
    chain.pay("m", [("w", 1, None), ("q", 0, None)], [("eve", 60)])
    path = tmp_path / "blind.duckdb"
    chain.store(path).close()
    return path


def scored(*compared: ComparedLedger, to: Path, asking: ScoringSettings = QUICK) -> list[ScoreFile]:
    paths = score_ledgers(compared, to, asking)
    write_manifest(to, paths, published=False)
    return [read_score_file(path) for path in paths]


def lumped(path: Path, name: str = "raw") -> ComparedLedger:
    return ComparedLedger(name, (path,), settings={"unknown": "leave-out"})


def test_coins_of_unknown_value_and_accounts_share_one_table(
    blind: Path, transfers: Path, tmp_path: Path
) -> None:
    files = scored(lumped(blind), ComparedLedger("shop", (transfers,)), to=tmp_path / "r")
    assert [(f.name, f.time) for f in files] == [
        ("raw", "temporal"), ("shop", "stationary"), ("shop", "temporal"),
    ]  # fmt: skip
    raw, known = row_of(files[0]), row_of(files[2])
    # w:0 and u:1 descend from unknown coins; a:0 does not.
    assert (raw.sinks, raw.lower_bounds, raw.known) == (3, 2, "lower bound")
    assert (known.lower_bounds, known.known) == (0, "exact")
    # Only a:0 is proven to have one origin: u:1 has 0 bits at least.
    assert raw.one_origin == pytest.approx(1 / 3)
    assert files[0].one_origin.sum() == 1


def test_every_note_reaches_every_output(blind: Path, transfers: Path, tmp_path: Path) -> None:
    report = tmp_path / "r"
    (file, *_) = scored(lumped(blind), ComparedLedger("shop", (transfers,)), to=report)
    (note,) = coinhaze.score(blind, unknown="leave-out").notes
    assert "2 of 5 transactions spend only coins of unknown value" in note
    assert file.notes == (note,)
    made = write_report(report)
    assert made.notes == [f"raw: {note}"]
    for name in ("temporal.txt", "temporal.md", "temporal.tex"):
        text = " ".join((report / "tables" / name).read_text().split())
        assert f"raw: {note}" in text, name
        assert "2 of 3 sinks of raw are lower bounds" in text, name
        sign = r"$\ge$0.81" if name.endswith("tex") else "≥0.81"
        assert sign in text, name
    beside = json.loads((report / "tables/temporal.csv.provenance.json").read_text())
    assert beside["notes"] == {"raw": [note]}
    assert beside["lower_bounds"] == {"raw": 2}
    with open(report / "tables/temporal.csv", newline="") as table:
        rows = {row["ledger"]: row for row in csv.DictReader(table)}
    assert (rows["raw"]["lower_bounds"], rows["raw"]["notes"]) == ("2", note)
    assert rows["raw"]["mean_known"] == "lower bound"
    assert (rows["shop"]["lower_bounds"], rows["shop"]["notes"]) == ("0", "")
    page = (report / "index.html").read_text()
    assert f"<li>raw: {note}</li>" in page
    assert '<td class="number"><bdi>≥0.81</bdi></td>' in page
    assert "so it is not ranked among the others" in page
    captions = (report / "figures/captions.txt").read_text().split("\n\n")
    assert sum(f"raw: {note}." in caption for caption in captions) == 7
    marked = [c.partition(":")[0] for c in captions if "(≥)" in c or "(≤)" in c]
    assert marked == ["bits-shares", "bits", "bits-against-steps", "top-shares", "growth"]
    # No output of a ledger without bounds has the sign.
    assert "≥" not in (report / "tables/stationary.txt").read_text()


def test_a_history_that_has_no_effect_is_noted(tmp_path: Path) -> None:
    folder = write_folder(coins("pools"), tmp_path / "p")
    history = tmp_path / "h.csv"
    history.write_text("pool,value\nsapling,1\n")
    files = scored(ComparedLedger("p", (folder,), history), to=tmp_path / "r")
    notes = {f.time: f.notes for f in files}
    for time, settings in (("stationary", {"view": "address"}), ("temporal", {"view": "coin"})):
        graph = coinhaze.transaction_graph(coins("pools"), **settings)  # type: ignore[arg-type]
        chain = coinhaze.absorbing_chain(graph, history={"sapling": [1]})
        assert notes[time] == chain.notes


def test_names_of_a_list_that_are_not_there_are_noted(transfers: Path, tmp_path: Path) -> None:
    some, none = tmp_path / "some.txt", tmp_path / "none.txt"
    some.write_text("alice\nnobody\n")
    none.write_text("nobody\n")
    files = scored(
        ComparedLedger("a", (transfers,), settings={"listed": str(some), "time": "temporal"}),
        ComparedLedger("b", (transfers,), settings={"listed": str(none), "time": "temporal"}),
        ComparedLedger("c", (transfers,), settings={"time": "temporal"}),
        to=tmp_path / "r",
    )
    assert files[0].notes == ("list: 1 name not in the ledger: nobody",)
    assert files[1].notes == ("list: none of its 1 names is in the ledger",)
    assert files[2].notes == ()
    assert [None if f.exposure is None else f.exposure.max() > 0 for f in files] == [
        True, False, None,
    ]  # fmt: skip


SHORT = "intervals are within 0.5 bits, not within 1e-09"


def falling_short(solve: Callable[..., Scores]) -> Callable[..., Scores]:
    """Make a solve that reaches less than it should, and raises what it reached."""

    def solved(*given: Any, **settings: Any) -> Scores:
        raise not_reached(solve(*given, **settings), SHORT)

    return solved


@pytest.mark.parametrize(
    ("name", "said"), [("score_for_mean", SHORT), ("score_exactly", f"exposure: {SHORT}")]
)
def test_an_accuracy_that_was_not_reached_is_noted_and_the_rest_is_written(
    name: str, said: str, transfers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("alice\n")
    monkeypatch.setattr(compare_run, name, falling_short(getattr(compare_run, name)))
    one = ComparedLedger("shop", (transfers,), settings={"listed": str(listed)})
    (file, _) = scored(one, to=tmp_path / "r")
    assert file.notes == (said,)
    assert file.exposure is not None
    report = write_report(tmp_path / "r", figures=False)
    assert report.shortfalls == [f"shop, stationary: {SHORT}", f"shop, temporal: {SHORT}"]
    assert f"shop: {said}" in report.grids[0].remarks


@pytest.mark.parametrize(
    ("settings", "readings"),
    [
        ({}, [("stationary", "address"), ("temporal", "coin")]),
        ({"time": "stationary"}, [("stationary", "address")]),
        ({"time": "temporal"}, [("temporal", "coin")]),
        ({"view": "coin"}, [("temporal", "coin")]),
        ({"view": "address"}, [("stationary", "address"), ("temporal", "address")]),
        ({"view": "address", "time": "temporal"}, [("temporal", "address")]),
        ({"policy": "fifo"}, [("temporal", "coin")]),
    ],
)
def test_view_time_and_policy_say_which_tables_a_ledger_of_coins_is_in(
    settings: dict[str, str], readings: list[tuple[str, str]], tmp_path: Path
) -> None:
    folder = write_folder(coins("utxo"), tmp_path / "p")
    files = scored(ComparedLedger("p", (folder,), settings=settings), to=tmp_path / "r")
    assert [(f.time, f.view) for f in files] == readings


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "uniform"},
        {"policy": "lifo"},
        {"policy": "poison", "listed": "alice\n"},
        {"opening": "account,amount\nalice,50\nbob,9\n"},
        {"opening": "account,amount\nalice,50\n", "top_up": True},
        {"clusters": "address,cluster\nalice,ab\nbob,ab\n"},
        {"links": "payment,node,probability\n2,alice,1\n"},
        {"mint": "one", "format": "transfers"},
    ],
    ids=str,
)
def test_every_option_of_score_shapes_the_rows_as_it_does_there(
    settings: dict[str, str | bool], transfers: Path, tmp_path: Path
) -> None:
    for name in ("opening", "clusters", "links", "listed"):
        if name in settings:
            path = tmp_path / f"{name}.csv" if name != "listed" else tmp_path / "listed.txt"
            path.write_text(str(settings[name]))
            settings = settings | {name: str(path)}
    from coinhaze.solve.source import read_options

    one = ComparedLedger("one", (transfers,), settings=settings | {"time": "temporal"})
    (file,) = scored(one, to=tmp_path / "r")
    expected = coinhaze.score(transfers, time="temporal", **read_options(settings))
    np.testing.assert_allclose(file.bits, expected.bits, atol=1e-9)
    # Files that settings name are told apart from the ledger's own.
    assert [made["file"] for made in file.about["inputs"]] == ["transfers.csv"]
    assert len(file.about["settings_files"]) == sum(
        name in settings for name in ("opening", "clusters", "links", "listed")
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"view": "coin", "time": "temporal"}, "has its own time"),
        ({"view": "coin", "clusters": "change"}, "clusters merge addresses"),
        ({"view": "account", "opening": "observed"}, "needs coins"),
        ({"policy": "poison"}, "needs a list"),
        ({"policy": "fifo", "links": __file__}, "links has no meaning"),
        ({"policy": "lifo", "time": "stationary"}, "in order"),
        ({"opening": "none.csv"}, "opening: none.csv: no such file"),
        ({"links": __file__}, r"test_compare_settings\.py"),
    ],
)
def test_what_cannot_be_is_known_before_anything_is_read(
    settings: dict[str, str], why: str, tmp_path: Path
) -> None:
    # The ledger does not exist, and nobody looks.
    one = ComparedLedger("one", (tmp_path / "missing",), settings=settings)
    (problem,) = problems_of(one)
    with pytest.raises(UsageError, match=why):
        raise UsageError(problem)


def no_solve(*given: Any, **settings: Any) -> Any:
    raise AssertionError("solved before all settings were checked")


@pytest.mark.parametrize(
    ("settings", "kind", "why"),
    [
        ({}, InputError, "values of .* are not known"),
        ({"unknown": "leave-out", "view": "address"}, UsageError, "it is not known who owned"),
        ({"unknown": "leave-out", "view": "account"}, UsageError, "does not fit this ledger"),
        ({"unknown": "leave-out", "time": "stationary"}, UsageError, "no such graph"),
        ({"unknown": "leave-out", "from": "soon"}, CoinhazeError, "soon"),
        ({"unknown": "leave-out", "policy": "poison", "listed": "nobody"}, InputError, "listed"),
    ],
)
def test_settings_that_do_not_fit_a_ledger_are_refused_before_the_first_solve(
    settings: dict[str, str],
    kind: type[CoinhazeError],
    why: str,
    blind: Path,
    transfers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare_run, "score_for_mean", no_solve)
    if "listed" in settings:
        names = tmp_path / "names.txt"
        names.write_text(settings["listed"])
        settings = settings | {"listed": str(names)}
    bad = ComparedLedger("bad", (blind,), settings=settings)
    with pytest.raises(kind, match=why):
        score_ledgers([ComparedLedger("shop", (transfers,)), bad], tmp_path / "r", QUICK)
    assert not (tmp_path / "r").exists()


def test_all_that_does_not_fit_is_named_at_once(
    blind: Path, transfers: Path, tmp_path: Path
) -> None:
    wrong = [
        ComparedLedger("one", (transfers,), settings={"view": "coin"}),
        ComparedLedger("two", (blind,)),
        ComparedLedger("three", (transfers,)),
    ]
    with pytest.raises(UsageError) as error:
        score_ledgers(wrong, tmp_path / "r", QUICK)
    first, second = str(error.value).splitlines()
    assert first.startswith("one: view 'coin' does not fit")
    assert second.startswith("two: ")


def every_file(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_ledger_that_is_added_makes_the_bytes_of_one_report_made_at_once(
    blind: Path, transfers: Path, tmp_path: Path
) -> None:
    week = ComparedLedger.of("week:dai", size=0.002)
    at_once, added = tmp_path / "a" / "report", tmp_path / "b" / "report"
    scored(week, ComparedLedger("shop", (transfers,)), lumped(blind), to=at_once)
    write_report(at_once)
    scored(week, to=added)
    write_report(added, figures=False)
    for one in (ComparedLedger("shop", (transfers,)), lumped(blind)):
        there = with_added(added, [one])
        told: list[str] = []
        paths = score_ledgers([one], added, QUICK, tell=told.append)
        assert all(line.startswith(one.name) for line in told)
        write_manifest(added, there.scores(paths), published=there.published)
        write_report(added, figures=one.name != "shop")  # the last have the others on them
    assert every_file(added) == every_file(at_once)


def test_a_name_that_is_there_is_refused_or_takes_its_place(
    transfers: Path, tmp_path: Path
) -> None:
    report, other = tmp_path / "r", tmp_path / "other.csv"
    other.write_text("from,to,amount\np,q,3\n")
    scored(ComparedLedger("one", (transfers,)), ComparedLedger("two", (transfers,)), to=report)
    new = ComparedLedger("one", (other,), settings={"time": "temporal"})
    with pytest.raises(UsageError, match=r"'one' already.*--replace"):
        with_added(report, [new])
    with pytest.raises(UsageError, match="'two' and 'Two'"):
        with_added(report, [ComparedLedger("Two", (other,))])
    there = with_added(report, [new], replace=True)
    paths = there.scores(score_ledgers([new], report, QUICK))
    assert [path.name for path in paths] == [
        "one-temporal.parquet", "two-stationary.parquet", "two-temporal.parquet",
    ]  # fmt: skip
    assert len(read_score_file(paths[0])) == 1


def test_a_report_of_another_format_is_refused(transfers: Path, tmp_path: Path) -> None:
    scored(ComparedLedger("one", (transfers,)), to=tmp_path)
    manifest = tmp_path / MANIFEST
    text = manifest.read_text()
    for change in ('"format": 1', '"format": 4', '"form": 3'):
        manifest.write_text(text.replace('"format": 3', change))
        with pytest.raises(InputError, match="this version reads format 3"):
            with_added(tmp_path, [ComparedLedger("two", (transfers,))])
        with pytest.raises(InputError, match="compare the ledgers again"):
            write_report(tmp_path)


def test_a_score_file_without_marks_is_refused(transfers: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    scored(ComparedLedger("one", (transfers,)), to=tmp_path)
    path = tmp_path / "scores/one-temporal.parquet"
    table = pq.read_table(path)
    old = table.schema.metadata[b"coinhaze"].replace(b'"format": 3,', b"")
    pq.write_table(table.replace_schema_metadata({b"coinhaze": old}), path)
    with pytest.raises(InputError, match=r"one-temporal\.parquet: written by coinhaze .* format 1"):
        with_added(tmp_path, [ComparedLedger("two", (transfers,))])


def test_the_command_of_a_ledger_names_all_that_shapes_its_rows(tmp_path: Path) -> None:
    one = ComparedLedger(
        "my raw", (Path("a b.txt"), Path("c.txt")), Path("h.csv"),
        {"unknown": "leave-out", "top_up": True},
    )  # fmt: skip
    assert command_of(one, ScoringSettings(walks=5)) == (
        "coinhaze compare 'my raw=a b.txt' 'my raw=c.txt' --unknown leave-out --top-up "
        "--pool-history 'my raw=h.csv' --walks 5"
    )


def test_other_settings_or_another_file_they_name_are_scored_again(
    transfers: Path, tmp_path: Path
) -> None:
    table = tmp_path / "opening.csv"
    table.write_text("account,amount\nalice,50\nbob,9\n")

    def told(**settings: str) -> int:
        lines: list[str] = []
        one = ComparedLedger("one", (transfers,), settings=settings)
        score_ledgers([one], tmp_path / "r", QUICK, tell=lines.append)
        return sum("sinks" in line for line in lines)

    assert told(opening=str(table)) == 2
    assert told(opening=str(table)) == 0
    table.write_text("account,amount\nalice,51\nbob,9\n")
    assert told(opening=str(table)) == 2
    assert told(opening=str(table), time="stationary") == 1
    assert told(opening=str(table), time="stationary") == 0


def test_mints_of_an_account_ledger_can_differ_from_row_to_row(tmp_path: Path) -> None:
    zero = "0x" + 40 * "0"
    rows = [(zero, "a", 3), (zero, "b", 3), ("a", "c", 3), ("b", "c", 3)]
    folder = write_folder(AccountLedger.from_transfers(rows), tmp_path / "l")
    files = scored(
        ComparedLedger("each", (folder,), settings={"time": "stationary"}),
        ComparedLedger("one", (folder,), settings={"time": "stationary", "mint": "one"}),
        to=tmp_path / "r",
    )
    assert [f.bits.max() for f in files] == [1.0, 0.0]

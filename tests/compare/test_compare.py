from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from coinhaze.compare.ledgers import (
    CONVENTIONS,
    ComparedLedger,
    ScoringSettings,
    Week,
    all_weeks,
    check_names,
    compared_of,
)
from coinhaze.compare.report import MANIFEST, write_manifest, write_report
from coinhaze.compare.rows import comparison_rows, row_of
from coinhaze.compare.run import growth_beside, score_ledgers
from coinhaze.errors import InputError, UsageError
from coinhaze.ledger import AccountLedger, Ledger, write_folder
from coinhaze.report.score_files import ScoreFile, read_score_file
from coinhaze.simulate.rings import ring_economy
from vectors import coins

ZERO = "0x0000000000000000000000000000000000000000"
TEN = """from,to,amount
alice,shop,5
bob,shop,3
shop,carol,6
bob,dave,2
dave,erin,1
frank,erin,4
"""
FAST: dict[str, Any] = {"walks": 50}


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    path = tmp_path / "ten.csv"
    path.write_text(TEN)
    return path


def compare(*ledgers: object, to: Path, **asking: Any) -> dict[tuple[str, str], ScoreFile]:
    compared = [
        one if isinstance(one, ComparedLedger) else ComparedLedger.of(str(one)) for one in ledgers
    ]
    paths = score_ledgers(compared, to, ScoringSettings(**FAST | asking))
    write_manifest(to, paths, published=False)
    return {(f.name, f.time): f for f in map(read_score_file, paths)}


def folder_of(ledger: Ledger, path: Path) -> Path:
    return write_folder(ledger, path)


def test_a_small_ledger_is_compared_in_both_readings(ten: Path, tmp_path: Path) -> None:
    files = compare(ten, to=tmp_path / "report")
    assert list(files) == [("ten", "stationary"), ("ten", "temporal")]
    stationary = files["ten", "stationary"]
    # shop, carol: 5 of 8 from alice; dave: bob alone; erin: a fifth from bob.
    entropy = {p: -p * math.log2(p) - (1 - p) * math.log2(1 - p) for p in (5 / 8, 1 / 5)}
    expected = sorted([entropy[5 / 8], entropy[5 / 8], 0.0, entropy[1 / 5]])
    np.testing.assert_allclose(np.sort(stationary.bits), expected, atol=1e-12)
    assert sorted(stationary.balance) == [1, 2, 5, 6]
    assert stationary.one_origin.sum() == 1
    assert stationary.about["inputs"][0]["file"] == "ten.csv"
    assert row_of(stationary).known == "exact"


def slow_figures(path: Path, column: str = "bits") -> dict[str, float]:
    """Sum a score file up with the standard library, from plain rows."""
    rows = [r for r in pq.read_table(path).to_pylist() if r[column] is not None and not r["burnt"]]
    bits: list[float] = sorted(r[column] for r in rows)
    steps = [r["steps"] for r in rows]
    held = [r["balance"] for r in rows]

    def at(share: float) -> float:
        place = share * (len(bits) - 1)
        low = math.floor(place)
        high = min(low + 1, len(bits) - 1)
        return bits[low] + (place - low) * (bits[high] - bits[low])

    return {
        "sinks": len(rows),
        "bits_mean": statistics.fmean(bits),
        "bits_median": statistics.median(bits),
        "bits_variance": statistics.pvariance(bits),
        "bits_max": max(bits),
        "bits_05": at(0.05),
        "bits_25": at(0.25),
        "bits_75": at(0.75),
        "bits_95": at(0.95),
        "bits_by_value": math.fsum(r[column] * r["balance"] for r in rows) / math.fsum(held),
        "steps_mean": statistics.fmean(steps),
        "steps_median": statistics.median(steps),
        "steps_variance": statistics.pvariance(steps),
        "top_probability_mean": statistics.fmean(r["top_probability"] for r in rows),
    }


def test_every_number_of_the_tables_comes_from_the_score_files(tmp_path: Path) -> None:
    weeks = [ComparedLedger.of(f"week:{name}", size=0.003) for name in ("dai", "zcash")]
    paths = score_ledgers(weeks, tmp_path, ScoringSettings(**FAST))
    write_manifest(tmp_path, paths, published=True)
    write_report(tmp_path, figures=False)
    for time in ("stationary", "temporal"):
        with open(tmp_path / "tables" / f"{time}.csv", newline="") as file:
            table = {(r["ledger"], r["variant"]): r for r in csv.DictReader(file)}
        looks = {("dai-week", ""), ("zcash-week", ""), ("zcash-week", "no history")}
        assert looks == {k for k in table if "paper" not in k[1]}
        for ledger, variant in sorted(looks):
            path = tmp_path / "scores" / f"{ledger}-{time}.parquet"
            about = json.loads(pq.read_schema(path).metadata[b"coinhaze"])
            found = slow_figures(path, "bits_unmodified" if variant else "bits")
            found |= {"nodes": about["nodes"], "edges": about["edges"]}
            row = table[ledger, variant]
            for name, value in found.items():
                assert float(row[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name
        assert float(table["dai-week", "paper"]["bits_mean"]) in (2.60, 3.13)


def test_the_rest_is_made_again_from_the_score_files_to_the_last_byte(
    ten: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    compare(ten, ComparedLedger.of("week:dai", size=0.002), to=report)
    first = {p: p.read_bytes() for p in write_report(report).written}
    for path in first:
        path.unlink()
    ten.unlink()
    again = write_report(report).written
    assert set(again) == set(first)
    assert {p.suffix for p in again} == {
        ".csv", ".json", ".txt", ".md", ".tex", ".png", ".svg", ".pdf", ".html",
    }  # fmt: skip
    for path in again:
        assert path.read_bytes() == first[path], path


def test_what_was_scored_before_is_not_scored_again(ten: Path, tmp_path: Path) -> None:
    def scored(**asking: Any) -> list[str]:
        told: list[str] = []
        asked = ScoringSettings(**FAST | asking)
        score_ledgers([ComparedLedger.of(str(ten))], tmp_path / "r", asked, tell=told.append)
        return [line for line in told if line != "ten: completeness: not checkable in this format"]

    assert len(scored()) == 2
    assert scored() == ["ten: scored before"]
    # One of two files is missing: only that one is made.
    (tmp_path / "r/scores/ten-stationary.parquet").unlink()
    (only,) = scored()
    assert only.startswith("ten, stationary: ")
    assert scored() == ["ten: scored before"]
    assert len(scored(mean_error=0.01)) == 2
    assert len(scored(settings={"mint": "one"})) == 2
    before = (tmp_path / "r/scores/ten-temporal.parquet").read_bytes()
    ten.write_text(TEN + "erin,alice,1\n")
    assert len(scored(settings={"mint": "one"})) == 2
    assert (tmp_path / "r/scores/ten-temporal.parquet").read_bytes() != before


def test_a_broken_score_file_is_made_again(ten: Path, tmp_path: Path) -> None:
    compare(ten, to=tmp_path / "r")
    path = tmp_path / "r/scores/ten-temporal.parquet"
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    compare(ten, to=tmp_path / "r")
    assert path.read_bytes() == good


def test_burns_and_nulls_are_counted_and_enter_no_figure(tmp_path: Path) -> None:
    rows = [
        ("a", "b", 4),
        ("b", ZERO, 1),
        ("x", "y", 5),
        ("y", "x", 5),
        ("y", "z", 3),
        ("z", "y", 3),
    ]
    ledger = AccountLedger.from_transfers(rows)
    files = compare(folder_of(ledger, tmp_path / "l"), to=tmp_path / "r")
    row = row_of(files["l", "stationary"])
    assert (row.sinks, row.burns) == (1, 1)
    assert row.bits_mean == 0.0
    grids = write_report(tmp_path / "r", figures=False).grids
    assert any("1 burns left out" in note for grid in grids for note in grid.notes)


def test_a_ledger_without_any_answer_has_dashes_not_numbers(tmp_path: Path) -> None:
    path = tmp_path / "still.csv"
    path.write_text("from,to,amount\na,b,3\nb,a,3\n")
    compare(path, to=tmp_path / "r")
    (paper, more, *_) = write_report(tmp_path / "r", figures=False).grids
    assert paper.rows[0][3:] == ("-",) * 7
    assert more.rows[0][-1] == "no sinks"


def test_rings_are_read_as_coins_only(tmp_path: Path) -> None:
    economy = ring_economy(blocks=30, ring=3)
    files = compare(folder_of(economy.ledger, tmp_path / "rings"), to=tmp_path / "r")
    assert list(files) == [("rings", "temporal")]
    file = files["rings", "temporal"]
    assert file.view == "coin"
    assert np.all(np.isnan(file.balance))
    assert math.isnan(row_of(file).bits_by_value)
    assert len(write_report(tmp_path / "r", figures=False).grids) == 2


def test_coins_are_read_by_address_and_as_coins(tmp_path: Path) -> None:
    files = compare(folder_of(coins("pools"), tmp_path / "p"), to=tmp_path / "r")
    assert {f.time: f.view for f in files.values()} == {"stationary": "address", "temporal": "coin"}


def test_a_history_has_a_row_with_and_one_without_it(tmp_path: Path) -> None:
    folder = folder_of(coins("pools"), tmp_path / "p")
    history = tmp_path / "h.csv"
    history.write_text("pool,value\n" + "".join(f"sapling,{k}\n" for k in range(1, 9)))
    plain = compare(ComparedLedger("p", (folder,)), to=tmp_path / "a")
    files = compare(ComparedLedger("p", (folder,), history), to=tmp_path / "b")
    rows = comparison_rows(list(files.values()), "temporal")
    assert [row.variant for row in rows] == ["", "no history"]
    without = comparison_rows(list(plain.values()), "temporal")
    assert rows[1].bits_mean == pytest.approx(without[0].bits_mean, abs=1e-12)
    assert rows[0].bits_mean > rows[1].bits_mean
    assert {i["file"] for i in files["p", "temporal"].about["inputs"]} >= {"h.csv"}


def test_a_list_gives_exposure_beside_bits_over_all_sources(ten: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("alice\nnobody\n")
    other = tmp_path / "other.csv"
    other.write_text("from,to,amount\np,q,3\n")
    plain = compare(ten, to=tmp_path / "a")
    files = compare(ten, other, to=tmp_path / "b", listed=listed)
    file = files["ten", "stationary"]
    assert np.array_equal(file.bits, plain["ten", "stationary"].bits)
    assert file.exposure is not None
    np.testing.assert_allclose(np.sort(file.exposure), [0, 0, 5 / 8, 5 / 8], atol=1e-12)
    row = row_of(file)
    assert row.exposure_mean == pytest.approx(5 / 16)
    assert row.exposure_by_value == pytest.approx(5 / 8 * (2 + 6) / 14)
    # None of the list is in the other ledger: nothing in it came from there.
    assert row_of(files["other", "temporal"]).exposure_mean == 0.0


def test_the_papers_conventions_change_the_graph(tmp_path: Path) -> None:
    rows = [(ZERO, "a", 3), (ZERO, "b", 3), ("a", "c", 3), ("b", "c", 3)]
    folder = folder_of(AccountLedger.from_transfers(rows), tmp_path / "l")
    ours = compare(folder, to=tmp_path / "a")["l", "stationary"]
    paper = compare(folder, to=tmp_path / "b", settings=CONVENTIONS["paper"])["l", "stationary"]
    assert (ours.bits.max(), paper.bits.max()) == (1.0, 0.0)


def test_draws_say_how_well_they_know_the_mean(tmp_path: Path) -> None:
    week = ComparedLedger.of("week:dai", size=0.005)
    exact = compare(week, to=tmp_path / "a")["dai-week", "stationary"]
    drawn = compare(week, to=tmp_path / "b", seconds=0.0)["dai-week", "stationary"]
    assert drawn.method.startswith("sketch (k=")
    assert drawn.mean_error is not None
    assert drawn.mean_error <= 0.05
    row, told = row_of(drawn), drawn.about["mean_interval"]
    assert row.known == (
        f"{told['low']:.2f} to {told['high']:.2f}, misses with probability at most 1e-09; "
        f"s.e. {drawn.mean_error:.3f}"
    )
    assert row.bits_low_mean <= row_of(exact).bits_mean <= row.bits_high_mean
    assert (row.mean_miss, row_of(exact).mean_miss) == (1e-9, 0.0)
    assert drawn.miss is not None
    assert drawn.miss.max() == 1e-9
    assert exact.miss is None or exact.miss.max() == 0.0
    means = drawn.about["draw_means"]
    assert len(means) >= 16
    assert drawn.mean_error == pytest.approx(statistics.stdev(means) / math.sqrt(len(means)))
    assert abs(row_of(drawn).bits_mean - row_of(exact).bits_mean) < 4 * drawn.mean_error
    # What has one origin is known, however bits were found.
    assert np.array_equal(drawn.one_origin, exact.one_origin)
    assert np.all((drawn.bits_low <= exact.bits + 1e-9) & (exact.bits <= drawn.bits_high + 1e-9))


def test_growth_lies_beside_unless_no_walks_are_requested(ten: Path, tmp_path: Path) -> None:
    compare(ten, to=tmp_path / "r")
    beside = growth_beside(tmp_path / "r/scores/ten-temporal.parquet")
    assert pq.read_table(beside)["payments"][0].as_py() == 0
    compare(ten, to=tmp_path / "r", walks=0)
    assert not beside.exists()


def test_ledgers_are_named_by_their_file_or_by_the_user(tmp_path: Path) -> None:
    path = tmp_path / "a=b.csv.gz"
    path.write_text("")
    assert ComparedLedger.of(str(path)).name == "a=b"
    assert ComparedLedger.of(f"mine={path}").name == "mine"
    assert ComparedLedger.of("x y=week:usdc-week", seed=3).source == Week("usdc-week", 1.0, 3)
    assert ComparedLedger("../a b", (path,)).slug == "a-b"
    assert ComparedLedger("€", (path,)).slug == "ledger"
    assert len(all_weeks()) == 5


def test_files_with_one_name_are_one_ledger(ten: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("from,to,amount\nerin,zoe,2\n")
    both = compared_of([f"all={ten}", f"all={more}", str(ten), "a=week:dai", "a=week:dai"])
    names = ["all", "ten", "a", "a"]
    assert [one.name for one in both] == names
    assert both[0].source == (ten, more)
    files = compare(both[0], to=tmp_path / "r")
    assert len(files["all", "stationary"]) == 5
    assert [i["file"] for i in files["all", "temporal"].about["inputs"]] == ["ten.csv", "more.csv"]


def test_an_input_is_not_written_into(tmp_path: Path) -> None:
    folder = folder_of(coins("pools"), tmp_path / "p")
    with pytest.raises(UsageError, match="write somewhere else"):
        compare(folder, to=folder)


def test_ledgers_nobody_could_tell_apart_are_refused(ten: Path) -> None:
    with pytest.raises(UsageError, match="'ten' and 'Ten'"):
        check_names([ComparedLedger("ten", (ten,)), ComparedLedger("Ten", (ten,))])
    with pytest.raises(UsageError, match="'ten' and 'ten'"):
        check_names([ComparedLedger("ten", (ten,)), ComparedLedger("ten", (ten,))])


@pytest.mark.parametrize("text", ["", "=x", "name="])
def test_what_is_no_ledger_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME=LEDGER"):
        ComparedLedger.of(text)


def test_missing_files_and_unknown_weeks_are_refused() -> None:
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        ComparedLedger.of("none.csv")
    with pytest.raises(UsageError, match="unknown week"):
        ComparedLedger.of("week:gold")


WRONG_MANIFESTS = [
    "{",
    "[]",
    '{"scores": ["../x.parquet"], "published": false}',
    '{"scores": "x", "published": false}',
    '{"scores": [], "published": 1}',
]


@pytest.mark.parametrize("text", WRONG_MANIFESTS, ids=range(5))
def test_a_manifest_that_says_nothing_of_use_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InputError, match="does not say what was compared"):
        write_report(tmp_path)


def test_a_folder_that_is_no_comparison_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="makes a comparison"):
        write_report(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        score_ledgers([], tmp_path / "file" / "r")


def test_a_broken_file_of_walks_is_named(ten: Path, tmp_path: Path) -> None:
    compare(ten, to=tmp_path / "r")
    growth_beside(tmp_path / "r/scores/ten-temporal.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"growth/ten-temporal\.parquet: cannot be read"):
        write_report(tmp_path / "r")


def test_other_parquet_files_are_no_score_files(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"bits": [1.0]}), path)
    with pytest.raises(InputError, match="does not say what made it"):
        read_score_file(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot be read"):
        read_score_file(path)

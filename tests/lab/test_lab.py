from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from coinhaze import cli
from coinhaze.errors import UsageError
from coinhaze.lab.lab import ParameterScan, lab, lab_all
from coinhaze.lab.report import lab_grids, lab_provenance, lab_table, write_lab
from coinhaze.simulate.intents import draw_intents
from coinhaze.simulate.technologies import TECHNOLOGIES

SMALL: dict[str, Any] = {"people": 40, "payments": 80}
PAIRS = [(t.name, o) for t in TECHNOLOGIES.values() for o in t.observers]
SHARES = ["deposit-pool", "wasabi", "stealth-accounts"]


@pytest.fixture(scope="module")
def pool() -> ParameterScan:
    return lab("deposit-pool", values=[0, 0.25, 0.5], seeds=6, **SMALL)


@pytest.mark.parametrize(("name", "observer"), PAIRS, ids=["-".join(p) for p in PAIRS])
def test_where_nobody_uses_it_nothing_is_gained_and_nothing_paid(name: str, observer: str) -> None:
    without = TECHNOLOGIES[name].without
    (point,) = lab(name, values=[without], observer=observer, seeds=2, **SMALL).points
    assert (point.gain.mean, point.gain.low, point.gain.high) == (0.0, 0.0, 0.0)
    trials = point.trials
    assert not np.any([trials.fees, trials.transactions, trials.waiting])
    assert np.all(trials.bits == trials.bits_without)


@pytest.mark.parametrize("name", SHARES)
def test_gains_are_those_of_people_compared_with_themselves(name: str) -> None:
    technology, seeds = TECHNOLOGIES[name], (4, 5, 6)
    (point,) = lab(name, values=[0.5], seed=4, seeds=3, **SMALL).points
    for k, seed in enumerate(seeds):
        intents = draw_intents(seed=seed, **SMALL)
        with_, without = technology.realise(intents, 0.5), technology.realise(intents, 0)
        before, after = without.bits(), with_.bits()
        mine = [p for p in range(40) if with_.adopters[p]]
        assert 0 < len(mine) < 40
        gains = [after[p] - before[p] for p in mine]
        others = [after[p] - before[p] for p in range(40) if p not in mine]
        trials = point.trials
        assert trials.bits[k] - trials.bits_without[k] == pytest.approx(np.mean(gains))
        assert trials.others[k] - trials.others_without[k] == pytest.approx(np.mean(others))


def test_costs_are_what_is_paid_beyond_the_same_payments_without() -> None:
    intents = draw_intents(seed=4, **SMALL)
    technology = TECHNOLOGIES["deposit-pool"]
    with_, without = technology.realise(intents, 0.5), technology.realise(intents, 0)
    (point,) = lab("deposit-pool", values=[0.5], seed=4, seeds=1, **SMALL).points
    of_adopters = [
        i
        for i in range(len(intents))
        if with_.adopters[intents.payer[i]] or with_.adopters[intents.payee[i]]
    ]
    more = with_.fees.sum() - without.fees.sum()
    assert point.trials.fees[0] == pytest.approx(more / intents.amount[of_adopters].sum())
    extra = with_.transactions - without.transactions
    assert point.trials.transactions[0] == pytest.approx(extra / len(of_adopters))
    assert point.trials.waiting[0] == with_.waiting > 0


@pytest.mark.parametrize("name", SHARES)
def test_common_random_numbers_make_the_band_narrower(name: str) -> None:
    technology = TECHNOLOGIES[name]
    (point,) = lab(name, values=[technology.usual], seeds=8, **SMALL).points
    welch = scipy.stats.ttest_ind(point.trials.bits, point.trials.bits_without, equal_var=False)
    unpaired = welch.confidence_interval(0.95)
    assert point.gain.mean == pytest.approx((unpaired.low + unpaired.high) / 2)
    assert point.gain.half < (unpaired.high - unpaired.low) / 2


def test_the_same_seeds_give_the_same_bits_for_any_number_of_threads(pool: ParameterScan) -> None:
    for threads in (1, 2):
        again = lab("deposit-pool", values=[0, 0.25, 0.5], seeds=6, threads=threads, **SMALL)
        assert again.trials().equals(pool.trials())
        assert again.to_arrow().equals(pool.to_arrow())


def test_a_seed_gives_the_same_whatever_others_are_run_with_it(pool: ParameterScan) -> None:
    alone = lab("deposit-pool", values=[0.5], seed=3, seeds=1, **SMALL)
    assert alone.points[0].trials.bits[0] == pool.points[2].trials.bits[2]


def test_people_who_do_not_adopt_gain_from_those_who_do(pool: ParameterScan) -> None:
    half = pool.points[2]
    assert half.others_gain.low > 0
    assert half.others_gain.mean < half.gain.mean


def test_one_seed_has_no_band() -> None:
    sweep = lab("stealth-accounts", values=[0.5], seeds=1, **SMALL)
    row = sweep.to_arrow().to_pylist()[0]
    assert row["gained_low"] is None
    assert row["gained_bits"] is not None
    assert "one seed has no band" in lab_grids([sweep])[0].notes[0]


def test_every_number_follows_from_the_trials_beside_it(
    pool: ParameterScan, tmp_path: Path
) -> None:
    write_lab([pool], tmp_path, lab_provenance([pool], "x"))
    with open(tmp_path / "trials.csv", newline="") as file:
        trials = list(csv.DictReader(file))
    with open(tmp_path / "lab.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(trials) == 18
    for row in rows:
        mine = [t for t in trials if t["value"] == row["value"]]
        gains = [float(t["bits"]) - float(t["bits_without"]) for t in mine]
        assert float(row["gained_bits"]) == pytest.approx(np.mean(gains))
        # 2.570582 is the 97.5 % point of t with five degrees of freedom.
        reach = 2.570582 * np.std(gains, ddof=1) / math.sqrt(6)
        assert float(row["gained_high"]) - float(row["gained_bits"]) == pytest.approx(
            reach, rel=1e-6, abs=1e-12
        )
        if float(row["fees"]):
            ratio = np.mean(gains) / np.mean([float(t["fees"]) for t in mine])
            assert float(row["per_fees_bits"]) == pytest.approx(ratio)


def test_files_are_the_same_every_time_and_need_nothing_else(
    pool: ParameterScan, tmp_path: Path
) -> None:
    kinds = [".csv", ".html", ".json", ".pdf", ".png", ".svg"]
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        written = write_lab([pool], folder, lab_provenance([pool], "coinhaze lab"))
        assert sorted({p.suffix for p in written}) == kinds
    for path in sorted(one.iterdir()):
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name
    page = (one / "lab.html").read_text()
    assert "<script" not in page
    assert "src=" not in page
    assert "<svg" in page
    assert "deposit-pool" in page
    about = json.loads((one / "lab.csv.provenance.json").read_text())
    assert about["settings"][0]["seeds"] == [1, 2, 3, 4, 5, 6]


def test_all_technologies_stand_in_one_table_at_their_usual_values() -> None:
    sweeps = lab_all(seeds=1, people=20, payments=15)
    rows = lab_table(sweeps).to_pylist()
    assert [(r["technology"], r["observer"]) for r in rows] == PAIRS
    assert [r["value"] for r in rows] == [TECHNOLOGIES[name].usual for name, _ in PAIRS]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"name": "tumbler"}, "no technology 'tumbler'"),
        ({"name": "rings", "values": [0]}, "from 1 to 128"),
        ({"name": "rings", "values": [2.5]}, "a whole number"),
        ({"name": "rings", "values": []}, "one at least"),
        ({"name": "rings", "values": [2, 2]}, "each value once"),
        ({"name": "rings", "observer": "oracle"}, "no observer 'oracle'"),
        ({"name": "rings", "seeds": 0}, "a seed or more"),
    ],
    ids=["name", "range", "whole", "none", "twice", "observer", "seeds"],
)
def test_what_cannot_be_tried_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        lab(**({"seeds": 1} | SMALL | asked))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["coinhaze", "lab", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_the_command_lists_what_can_be_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--list") == 0
    printed = capsys.readouterr().out
    for technology in TECHNOLOGIES.values():
        assert f"{technology.name}: {technology.says}" in printed


def test_the_command_prints_json_with_what_made_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["rings", "--values=1,4", "--seeds=2", "--people=20", "--payments=15", "--json"]
    assert run(monkeypatch, *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [p["value"] for p in found["points"]] == [1.0, 4.0]
    assert found["provenance"]["command"] == " ".join(["coinhaze", "lab", *words])
    assert found["settings"][0]["seeds"] == [1, 2]


def test_the_command_draws_all_technologies(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ["--seeds=1", "--people=20", "--payments=10"]
    assert run(monkeypatch, "all", *small, "-o", str(tmp_path / "out")) == 0
    printed = capsys.readouterr().out
    assert "rings (ages), 16" in printed
    assert (tmp_path / "out" / "lab.png").stat().st_size > 10_000
    assert run(monkeypatch, "--all", *small) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    "words",
    [[], ["rings", "--values", "a"], ["all", "--values", "1"], ["rings", "--all"], ["nothing"]],
    ids=["none", "letters", "all-values", "both", "unknown"],
)
def test_the_command_refuses_what_it_cannot_do(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    assert capsys.readouterr().err.count("\n") == 1

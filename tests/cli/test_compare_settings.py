"""coinhaze compare with a settings file, and with ledgers added to a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coinhaze.compare import run as compare_run
from coinhaze.measures import Scores
from coinhaze.measures.scores import not_reached
from store.made_stores import Chain

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--no-figures", "--walks", 0)


def blind(path: Path) -> None:
    """Make a store in which u spends two coins of unknown value."""
    chain = Chain(first=9)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.pay("u", [("x", 0, None), ("y", 1, None)], [("bob", 30)])
    chain.store(path).close()


def settings(text: str, path: str = "report.toml") -> Path:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    return Path(path)


def test_ledgers_that_need_different_settings_share_a_table(run: Run, transfers: Path) -> None:
    blind(Path("raw.duckdb"))
    settings(
        f'[raw]\nledger = "raw.duckdb"\nunknown = "leave-out"\n'
        f'[shop]\nledger = ["{transfers.name}"]\ntime = "temporal"\nmint = "one"\n'
        f'[dai]\nledger = "week:dai"\nsize = 0.002\n'
    )
    code, out, err = run("compare", "--settings", "report.toml", "-o", "r", *QUICK)
    assert code == 0, err
    temporal = out[out.index("Temporal graphs") :]
    assert [name in temporal for name in (" raw ", " shop ", " dai ")] == [True] * 3
    assert " shop " not in out[: out.index("Temporal graphs")]
    assert "≥: a lower bound. Bits of 1 of 2 sinks of raw" in out
    assert "raw: unknown values: 1 of 2 transactions" in out


def test_paths_are_taken_from_the_settings_files_own_folder(run: Run, transfers: Path) -> None:
    settings(f'[shop]\nledger = "../{transfers.name}"\nopening = "table.csv"\n', "kept/report.toml")
    Path("kept/table.csv").write_text("account,amount\nalice,500\nbob,500\ncarol,500\n")
    code, _, err = run("compare", "--settings", "kept/report.toml", "-o", "r", *QUICK)
    assert code == 0, err


def has_row(shown: str, name: str) -> bool:
    """Tell whether a table has a row of that name; words around it may have the letter too."""
    return any(line.split()[:1] == [name] for line in shown.splitlines())


def test_options_are_for_all_and_a_ledgers_own_settings_count_first(
    run: Run, transfers: Path
) -> None:
    settings(
        f'[a]\nledger = "{transfers.name}"\n[b]\nledger = "{transfers.name}"\ntime = "temporal"\n'
    )
    given = ("--settings", "report.toml", "--time", "stationary")
    code, out, _ = run("compare", *given, "-o", "r", *QUICK)
    assert code == 0
    stationary, _, temporal = out.partition("Temporal graphs")
    assert ("\n a " in stationary, "\n b " in stationary) == (True, False)
    assert ("\n a " in temporal, "\n b " in temporal) == (False, True)


WRONG = """
[one]
ledger = "none.csv"
unkown = "leave-out"
[two]
ledger = "transfers.csv"
time = "sometimes"
complete = "yes"
token = 7
[three]
[four]
ledger = "transfers.csv"
policy = "poison"
size = 1.0
[five]
ledger = "week:gold"
[six]
ledger = "week:dai"
size = "big"
[seven]
ledger = "transfers.csv"
opening = "none.csv"
"""
SAID = (
    "report.toml: [one] unkown: no such setting; there are ",
    "report.toml: [one] ledger: none.csv: no such file or folder",
    "report.toml: [two] time: is one of stationary, temporal, not 'sometimes'",
    "report.toml: [two] complete: is true or false, not 'yes'",
    "report.toml: [two] token: is text, not 7",
    "report.toml: [three] ledger: write a file, a list of files, or week:NAME",
    "report.toml: [four] size: only made-up weeks have it",
    "report.toml: [five] unknown week",
    "report.toml: [six] ",
    "report.toml: [seven] opening: none.csv: no such file",
)


def test_all_that_is_wrong_is_named_at_once_before_anything_is_solved(
    run: Run, transfers: Path
) -> None:
    assert transfers.name == "transfers.csv"
    settings(WRONG)
    code, _, err = run("compare", "--settings", "report.toml", "-o", "r")
    assert code == 2
    lines = err.removeprefix("coinhaze: ").splitlines()
    assert len(lines) == len(SAID)
    for line, said in zip(lines, SAID, strict=True):
        assert line.startswith(said)
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "names no ledger"),
        ("[a\n", "cannot be read as TOML"),
        ('ledger = "a"\n', "[ledger] is 'a', not a table of settings"),
        ('[a]\nledger = "transfers.csv"\n[a]\n', "cannot be read as TOML"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused(
    run: Run, transfers: Path, text: str, why: str
) -> None:
    settings(text)
    code, _, err = run("compare", "--settings", "report.toml", "-o", "r")
    assert (code, why in err) == (2, True), err
    assert run("compare", "--settings", "none.toml", "-o", "r")[0] == 2
    Path("report.toml").write_bytes(b'[a]\nledger = "\xff"\n')
    assert run("compare", "--settings", "report.toml", "-o", "r")[0] == 2


def test_a_ledger_is_added_and_the_report_is_as_if_made_at_once(run: Run, transfers: Path) -> None:
    blind(Path("raw.duckdb"))
    settings(
        f'[shop]\nledger = "{transfers.name}"\n'
        '[raw]\nledger = "raw.duckdb"\nunknown = "leave-out"\n'
    )
    for folder in ("a", "b"):
        Path(folder).mkdir()
    assert run("compare", "--settings", "report.toml", "-o", "a/report", *QUICK)[0] == 0
    assert run("compare", f"shop={transfers.name}", "-o", "b/report", *QUICK)[0] == 0
    code, out, err = run(
        "compare", "--add", "raw=raw.duckdb", "--unknown", "leave-out", "-o", "b/report", *QUICK
    )
    assert code == 0
    assert "shop" not in err
    assert "raw, temporal: 2 sinks" in err
    assert " shop " in out

    def files(folder: str) -> dict[str, bytes]:
        found = (p for p in Path(folder).rglob("*") if p.is_file())
        return {str(p.relative_to(folder)): p.read_bytes() for p in found}

    assert files("a") == files("b")
    again = run("compare", "--again", "-o", "b/report", "--no-figures")
    assert again[:2] == (0, out)
    assert files("a") == files("b")


def test_a_name_that_is_there_needs_replace(run: Run, transfers: Path) -> None:
    assert run("compare", f"shop={transfers}", "-o", "r", *QUICK)[0] == 0
    Path("other.csv").write_text("from,to,amount\np,q,3\n")
    before = Path("r/tables/temporal.csv").read_bytes()
    code, _, err = run("compare", "--add", "shop=other.csv", "-o", "r", *QUICK)
    assert (code, "--replace" in err) == (2, True)
    assert Path("r/tables/temporal.csv").read_bytes() == before
    assert run("compare", "--add", "--replace", "shop=other.csv", "-o", "r", *QUICK)[0] == 0
    assert b"other.csv" in Path("r/tables/temporal.csv").read_bytes()


def test_adding_needs_a_report_and_ledgers(run: Run, transfers: Path) -> None:
    assert run("compare", "--add", transfers, "-o", "none")[0] == 3
    assert run("compare", "--add", "-o", "none")[0] == 2
    assert run("compare", "--add", "--again", "-o", "none")[0] == 2
    assert run("compare", "--replace", transfers, "-o", "none")[0] == 2


def test_the_paper_s_figures_stay_when_a_ledger_is_added(run: Run, transfers: Path) -> None:
    week = ("week:dai", "--size", 0.002)
    assert run("compare", *week, "--published", "-o", "r", *QUICK)[0] == 0
    code, out, _ = run("compare", "--add", transfers, "-o", "r", *QUICK)
    assert (code, "paper" in out) == (0, True)


def test_an_accuracy_that_was_not_reached_is_written_and_exits_with_5(
    run: Run, transfers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve = getattr(compare_run, "score_for_mean")  # noqa: B009

    def short(*given: Any, **settings: Any) -> Scores:
        raise not_reached(solve(*given, **settings), "intervals are within 0.5 bits")

    monkeypatch.setattr(compare_run, "score_for_mean", short)
    code, out, err = run("compare", f"shop={transfers}", "-o", "r", *QUICK)
    assert code == 5
    assert "shop: intervals are within 0.5 bits" in out
    assert "warning: shop, temporal: intervals are within 0.5 bits" in err
    assert Path("r/scores/shop-temporal.parquet").exists()

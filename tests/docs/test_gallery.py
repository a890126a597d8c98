"""The gallery's scripts run, and say what the library says."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
PAGE = GALLERY.parent / "gallery.md"


def run(name: str, arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
    return printed.getvalue()


# Each with arguments that make it quick, and words that only a right answer has.
SCRIPTS = {
    "reproduce_a_table": (["dai", "--size", "0.005"], ["dai-week-stationary", "dai-week-temporal"]),
    "score_my_coins": ([], ["equal origins", "for 100000"]),
    "screen_a_deposit": ([], ["haircut: 20.0%", "lifo: 0.0%", "thief -> shop -> friend"]),
    "compare_two_technologies": (["--seeds", "3", "--people", "30", "--payments", "80"], ["bits"]),
    "write_your_own_policy": (["--half-lives", "1e12"], ["half after 1e+12"]),
}


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_of_the_gallery_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, words = SCRIPTS[name]
    printed = run(name, arguments, tmp_path, monkeypatch)
    for word in words:
        assert word in printed


def test_a_policy_that_never_forgets_is_the_proportional_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = run("write_your_own_policy", ["--half-lives", "1e15"], tmp_path, monkeypatch)
    proportional, own = (line.rpartition(": ")[2] for line in lines.splitlines())
    assert proportional == own


def test_every_script_is_tried_and_on_the_page() -> None:
    names = {path.stem for path in GALLERY.glob("*.py")}
    assert names == set(SCRIPTS)
    page = PAGE.read_text()
    for name in names:
        assert f"gallery/{name}.py" in page

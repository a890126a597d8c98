from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_text_tells_sources_and_hops(run: Run, transfers: Path) -> None:
    code, out, _ = run("origins", transfers, "carol", "--hops", 1)
    assert code == 0
    assert "By hop" in out
    assert "shop 100.00%" in out
    assert "further back" in out


def test_what_is_only_assumed_is_not_simply_held(run: Run) -> None:
    Path("pays.csv").write_text("from,to,amount\nerin,alice,84\nbob,erin,109\ndan,carol,5\n")
    time = ("--time", "temporal")
    for form in ("text", "html"):
        out = " ".join(run("origins", "pays.csv", "erin", *time, "--as", form)[1].split())
        assert "It holds 109 at the end" in out
        assert "of the window, of which 84 assumed to have been there before the window." in out
    out = run("origins", "pays.csv", "carol", *time)[1]
    assert "It holds 5 at the end" in out
    assert "assumed" not in out
    Path("held.csv").write_text("account,amount\nerin,84\nbob,109\ndan,5\n")
    known = run("origins", "pays.csv", "erin", *time, "--opening", "held.csv")[1]
    out = " ".join(known.split())
    assert "It holds 109 at the end of the window." in out  # a table is no assumption


def test_labels_are_applied(run: Run, transfers: Path) -> None:
    Path("labels.csv").write_text("address,label\nalice,Alice's bank\nshop,a kiosk\n")
    code, out, _ = run("origins", transfers, "carol", "--labels", "labels.csv")
    assert code == 0
    assert "Alice's bank: alice" in out
    assert "By label" in out
    assert "a kiosk 100.00%" in out


@pytest.mark.parametrize(
    ("form", "begins"),
    [("dot", 'digraph "origins of carol" {'), ("html", "<!doctype html>"), ("json", "{")],
)
def test_every_form_goes_to_stdout_or_a_file(
    run: Run, transfers: Path, form: str, begins: str
) -> None:
    code, out, _ = run("origins", transfers, "carol", "--as", form)
    assert code == 0
    assert out.startswith(begins)
    code, nothing, err = run("origins", transfers, "carol", "--as", form, "-o", "told")
    note, wrote = err.splitlines()
    assert (code, nothing, wrote) == (0, "", "wrote told")
    assert note.startswith(f"note: --as {form} is now ")
    assert Path("told").read_text().startswith(begins)
    code, nothing, err = run("origins", transfers, "carol", "-o", f"told.{form}")
    assert (code, nothing, err) == (0, "", f"wrote told.{form}\n")
    assert Path(f"told.{form}").read_text().startswith(begins)


def test_text_goes_to_a_file_too(run: Run, transfers: Path) -> None:
    code, out, _ = run("origins", transfers, "carol", "-o", "told.txt")
    assert (code, out) == (0, "")
    assert "alice → shop → carol" in Path("told.txt").read_text()


def test_the_page_names_its_inputs(run: Run, transfers: Path) -> None:
    page = run("origins", transfers, "carol", "--as", "html")[1]
    digest = json.loads(run("origins", transfers, "carol", "--as", "json")[1])["provenance"]
    assert digest["inputs"][0]["sha256"] in page
    assert "<svg" in page


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        pytest.param(["--as", "dot", "--json"], 2, "two things", id="two forms"),
        pytest.param(["--hops", 0], 2, "--hops", id="no hops"),
        pytest.param(["--as", "dot", "--policy", "fifo"], 2, "follows lots", id="lots"),
        pytest.param(["--labels", "none.csv"], 3, "none.csv", id="no labels"),
        pytest.param(["-o", "transfers.csv"], 2, "one of the inputs", id="over the input"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    run: Run, transfers: Path, more: list[object], code: int, words: str
) -> None:
    before = transfers.read_text()
    found, out, err = run("origins", "transfers.csv", "carol", *more)
    assert found == code
    assert out == ""
    assert words in err
    assert transfers.read_text() == before

"""Parts of one question, solved by several commands and merged: the scores of one command."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.ledger import write_folder
from coinhaze.solve.pool.parts import Part
from coinhaze.solve.structure.columns import Columns
from coinhaze.solve.truncated import truncate
from solve.economies import random_transfers

Run = Callable[..., tuple[int, str, str]]
DRAWN = ("--accuracy", "preview", "--seed", "0", "--draws", "320")


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """A ledger whose exact scores are solved by several blocks of tiles."""
    return write_folder(random_transfers(300, 900, 3), tmp_path / "week")


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """A small ledger: how many pieces drawn scores are made of follows from the draws alone."""
    return write_folder(random_transfers(30, 90, 3), tmp_path / "day")


def solve(run: Run, source: Path, of: int, *options: object, into: str = "parts") -> list[Path]:
    Path(into).mkdir(exist_ok=True)
    paths = [Path(into) / f"{k}" for k in range(1, of + 1)]
    for k, path in enumerate(paths, 1):
        code, out, err = run("score", source, *options, "--part", f"{k}/{of}", "-o", path)
        assert (code, out) == (0, ""), err
        assert f"wrote {path}" in err
    return paths


def one(run: Run, source: Path, *options: object) -> bytes:
    code, _, err = run("score", source, *options, "-o", "one.csv")
    assert code == 0, err
    return Path("one.csv").read_bytes()


@pytest.mark.parametrize(
    ("ledger", "of", "options"),
    [
        ("week", 3, ("--time", "temporal")),
        ("week", 2, ("--nodes", "all")),
        ("day", 3, DRAWN),
        ("day", 7, (*DRAWN, "--with", "degree")),
    ],
    ids=["exact", "all", "preview", "more-parts-than-tiles"],
)
def test_a_merge_gives_the_bytes_of_one_command(
    run: Run, ledger: str, of: int, options: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    source = request.getfixturevalue(ledger)
    expected = one(run, source, *options)
    paths = solve(run, source, of, *options)
    code, _, err = run("merge", *reversed(paths), "-o", "merged.csv")
    assert code == 0, err
    assert Path("merged.csv").read_bytes() == expected


def test_lists_are_merged_as_tiles_are(
    run: Run, week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coinhaze.solve.planner.cost import ExactCost, SweepCost

    cheap = SweepCost(entries=1.0, alive=1.0)
    monkeypatch.setattr(ExactCost, "lists", property(lambda self: cheap), raising=False)
    monkeypatch.setattr(SweepCost, "blocks", property(lambda self: 4))
    expected = one(run, week, "--time", "temporal")
    paths = solve(run, week, 3, "--time", "temporal")
    names = zipfile.ZipFile(paths[2]).namelist()
    assert {"2.json", "3.json"} <= set(names)
    assert run("merge", *paths, "-o", "merged.csv")[0] == 0
    assert Path("merged.csv").read_bytes() == expected


@pytest.mark.parametrize(
    ("options", "first", "tries"),
    [
        (("--accuracy", "0.2"), None, 1),
        (("--accuracy", "0.2", "--over", "mean"), None, 1),
        (("--accuracy", "0.05"), 100.0, 2),  # so much is dropped at first that it is not enough
    ],
    ids=["worst", "mean", "tried-again"],
)
def test_an_accuracy_in_bits_is_merged_whatever_number_of_tries_it_takes(
    run: Run,
    week: Path,
    options: tuple[str, ...],
    first: float | None,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    always_try(monkeypatch)
    if first is not None:
        monkeypatch.setitem(truncate.FIRST, "worst", first)
    attempts = counted(monkeypatch)
    expected = one(run, week, "--time", "temporal", *options)
    assert len(attempts) >= tries
    attempts.clear()
    paths = solve(run, week, 3, "--time", "temporal", *options)
    assert len(attempts) == 3
    attempts.clear()
    code, _, err = run("merge", *paths, "-o", "merged.csv")
    assert code == 0, err
    assert len(attempts) >= tries
    assert Path("merged.csv").read_bytes() == expected


def test_a_part_that_reads_too_much_leads_a_merge_to_exact_scores(
    run: Run, week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--time", "temporal", "--accuracy", "0.01")
    before = truncate.Truncation.attempt

    def attempt(self: Any, level: float, **given: Any) -> Any:
        return before(self, level, **given | {"entries": 3000.0})

    monkeypatch.setattr(truncate.Truncation, "attempt", attempt)
    expected = one(run, week, *options)
    assert b"dropping" not in Path("one.csv.provenance.json").read_bytes()
    paths = solve(run, week, 4, *options)
    refused = [
        name
        for path in paths
        for name in zipfile.ZipFile(path).namelist()
        if b"PieceRefused" in zipfile.ZipFile(path).read(name)
    ]
    assert refused
    code, _, err = run("merge", *paths, "-o", "merged.csv")
    assert code == 0, err
    assert Path("merged.csv").read_bytes() == expected


def always_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tries go on, whatever exact scores would take."""
    before = truncate.narrowing

    def narrowing(question: Any, **given: Any) -> Any:
        return before(question, **given | {"exact": None})

    monkeypatch.setattr(truncate, "narrowing", narrowing)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note the level of every try."""
    levels: list[float] = []
    before = truncate.Truncation.attempt

    def attempt(self: Any, level: float, **given: Any) -> Any:
        levels.append(level)
        return before(self, level, **given)

    monkeypatch.setattr(truncate.Truncation, "attempt", attempt)
    return levels


def test_parts_have_every_piece_once() -> None:
    for pieces in (0, 1, 5, 64, 127):
        for of in (1, 2, 3, 64, 220):
            shares = [Part(k, of).share(pieces) for k in range(1, of + 1)]
            assert [k for share in shares for k in share] == list(range(pieces))


def test_a_part_without_pieces_says_so(run: Run, transfers: Path) -> None:
    code, _, err = run("score", transfers, "--part", "1/2", "-o", "first")
    assert (code, err) == (
        0,
        "note: there are fewer pieces than parts, and none for 1/2\nwrote first\n",
    )


def test_missing_and_double_parts_are_named(run: Run, day: Path) -> None:
    paths = solve(run, day, 3, *DRAWN)
    code, _, err = run("merge", paths[0], paths[2], "-o", "x.csv")
    assert (code, err) == (
        3,
        "coinhaze: part 2/3 is missing: solve it with --part, and merge again\n",
    )
    shutil.copy(paths[1], "again")
    code, _, err = run("merge", *paths, "again", "-o", "x.csv")
    assert (code, err) == (3, "coinhaze: parts/2 and again are both part 2/3: keep one\n")
    assert not Path("x.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*DRAWN[:3], "9", *DRAWN[4:]), "options seed, 9 and 0"),
        ((*DRAWN[:5], "640"), "options draws, 640 and 320"),
        ((*DRAWN, "--time", "temporal"), "options time, 'temporal' and None"),
        (DRAWN[:0], "options accuracy, None and 'preview'"),
    ],
)
def test_parts_of_different_questions_are_refused(
    run: Run, day: Path, options: tuple[str, ...], words: str
) -> None:
    first = solve(run, day, 2, *DRAWN)[0]
    other = solve(run, day, 2, *options, into="others")[1]
    code, _, err = run("merge", first, other)
    assert code == 3
    assert err == f"coinhaze: {other} and {first} are parts of different questions: {words}\n"


def test_parts_of_different_ledgers_or_numbers_are_refused(run: Run, day: Path) -> None:
    first = solve(run, day, 2, *DRAWN)[0]
    another = write_folder(random_transfers(30, 90, 4), "another")
    other = solve(run, another, 2, *DRAWN, into="others")[1]
    assert "different questions: ledger\n" in run("merge", first, other)[2]
    third = solve(run, day, 3, *DRAWN, into="thirds")[2]
    assert "different questions: number of parts, 3 and 2\n" in run("merge", first, third)[2]


def changed(path: Path, to: str, **about: Any) -> Path:
    """Copy a part with something else said of it."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "about.json":
                text = json.dumps(json.loads(text) | about).encode()
            new.writestr(name, text)
    return Path(to)


def test_parts_of_another_version_or_chain_are_refused(run: Run, day: Path) -> None:
    paths = solve(run, day, 2, *DRAWN)
    old = changed(paths[1], "old", software="coinhaze 0.0.1")
    assert "different questions: version, 'coinhaze 0.0.1' and" in run("merge", paths[0], old)[2]
    code, _, err = run("merge", old, paths[0])
    assert code == 2
    assert "old: solved by coinhaze 0.0.1; this is" in err
    for name, words in (("digest", "chain"), ("pieces", "pieces")):
        other = changed(paths[1], "other", **{name: "0" * 64 if name == "digest" else 9})
        assert f"different questions: {words}" in run("merge", paths[0], other)[2]
    both = [changed(path, path.name, digest="0" * 64) for path in paths]
    code, _, err = run("merge", *both)
    assert code == 3
    assert "sums of another chain than their ledger gives here" in err
    code, _, err = run("merge", changed(paths[0], "new", format=2), paths[1])
    assert code == 3
    assert "new: a part in format 2" in err


def test_a_ledger_that_changed_is_refused(run: Run, transfers: Path) -> None:
    paths = solve(run, transfers, 2)
    transfers.write_text(transfers.read_text() + "bob,carol,1\n")
    code, _, err = run("merge", *paths)
    assert code == 3
    assert "transfers.csv has changed since, or is another one" in err


def test_what_is_no_part_is_refused_and_not_run(run: Run, day: Path, tmp_path: Path) -> None:
    part = solve(run, day, 2, *DRAWN)[0]
    whole = part.read_bytes()
    Path("short").write_bytes(whole[: len(whole) // 2])
    Path("text").write_text("a,b\n")
    with zipfile.ZipFile("empty", "w"):
        pass
    for name in ("short", "text", "empty"):
        code, _, err = run("merge", name)
        assert code == 3
        assert err.startswith(f"coinhaze: {name}: no part that coinhaze score --part wrote")
    assert (
        run("merge", "nowhere")[2]
        == "coinhaze: nowhere: cannot be read: No such file or directory\n"
    )
    # One byte of a sum is another one: the archive's own check sees it.
    second = Path("parts/2")
    with zipfile.ZipFile(second) as archive:
        member = next(i for i in archive.infolist() if i.filename.endswith(".npy"))
    damaged = bytearray(second.read_bytes())
    damaged[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 1
    second.write_bytes(bytes(damaged))
    code, _, err = run("merge", part, second)
    assert code == 3
    assert "parts/2: no part" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--part", "0/3", "-o", "x"), "a part is a number of how many, as 3/220 is, not '0/3'"),
        (("--part", "4/3", "-o", "x"), "not '4/3'"),
        (("--part", "3", "-o", "x"), "not '3'"),
        (("--part", "1/3"), "--part takes -o FILE"),
        (("--part", "1/3", "-o", "x", "--json"), "no --dry-run, --keep, --json or --observers"),
        (
            ("--part", "1/3", "-o", "x", "--accuracy", "0.1", "--miss", "1e-6"),
            "--accuracy 0.1 with --miss is proven or drawn",
        ),
        (("--part", "1/3", "-o", "x", "--accuracy", "preview"), "have one seed: give --seed"),
        (("--part", "1/3", "-o", "x", "--preset", "paper"), "--preset does not go with --part"),
        (("--part", "1/3", "-o", "x", "--workers", "2"), "--workers does not go with --part"),
        (("--part", "1/3", "-o", "x", "--device", "gpu"), "--device does not go with --part"),
        (("--part", "1/3", "-o", "x", "--policy", "fifo"), "not solved in pieces"),
    ],
)
def test_questions_that_have_no_parts(
    run: Run, transfers: Path, options: tuple[str, ...], words: str
) -> None:
    code, _, err = run("score", transfers, *options)
    assert code == 2
    assert words in err
    assert {path.name for path in Path().iterdir()} == {"transfers.csv"}


def test_a_part_that_fails_leaves_nothing(
    run: Run, day: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Columns, "__len__", lambda self: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run("score", day, "--part", "1/2", "-o", "x")
    assert {path.name for path in Path().iterdir()} == {"day"}


def test_merging_by_the_library(tmp_path: Path) -> None:
    from coinhaze.report.part_files import merged, read_parts, write_part

    ledger = random_transfers(60, 200, 5)
    source = str(write_folder(ledger, tmp_path / "ledger"))
    asked: dict[str, Any] = {"time": "temporal"}
    paths = [tmp_path / "a", tmp_path / "b"]
    for k, path in enumerate(paths, 1):
        write_part([source], Part(k, 2), path, settings=asked, options=asked, inputs=[source])
    found = merged(read_parts(paths), settings=asked, inputs=[source])
    assert found.bits.tobytes() == coinhaze.score(ledger, **asked).bits.tobytes()

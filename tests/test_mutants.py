"""The list of mutants fits the code as it is now; `make mutants` runs the tests against it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mutants.apply import DoesNotApply, changed, missing_tests, mutated
from mutants.entries import MAX_EQUIVALENT, Mutant, load

ROOT = Path(__file__).parent.parent
MUTANT = Mutant("pack.a", "Box.size", "n + 1", "n", "too small", ("tests/test_mutants.py",))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    (folder / "pack").mkdir(parents=True)
    (folder / "pack" / "a.py").write_text(
        "LIMIT = 3\n\nclass Box:\n    def size(self, n, far=False):\n"
        "        # a comment, and another layout\n        return (\n            n+1)\n\n"
        "def query(name):\n    return f'SELECT {name} FROM t WHERE x > 1'\n"
    )
    return folder


def test_every_entry_changes_what_it_names_and_names_tests_that_exist() -> None:
    lost = []
    for mutant in load():
        try:
            changed(mutant, ROOT / "src")
        except DoesNotApply as error:
            lost.append(str(error))
        lost += [f"{mutant}: no test {test}" for test in missing_tests(mutant, ROOT)]
    assert not lost, "\n".join(lost)


def test_the_list_is_long_and_without_repeats() -> None:
    mutants = load()
    assert len(mutants) >= 200
    assert not [m for m, times in Counter(str(m) for m in mutants).items() if times > 1]
    assert sum(bool(m.equivalent) for m in mutants) <= MAX_EQUIVALENT
    assert all(m.tests and m.why for m in mutants)


def test_an_expression_is_found_whatever_its_layout(source: Path) -> None:
    path, text = mutated(MUTANT, source)
    assert path == source / "pack" / "a.py"
    assert "return n\n" in text


def test_a_function_that_moved_is_found_by_its_name(source: Path) -> None:
    (source / "pack" / "a.py").rename(source / "pack" / "b.py")
    path, text = mutated(MUTANT, source)
    assert path == source / "pack" / "b.py"
    assert "return n\n" in text


def test_defaults_texts_and_constants_can_be_changed(source: Path) -> None:
    default = replace(MUTANT, argument="far", find="False", replace="True")
    assert "far=True" in mutated(default, source)[1]
    query = replace(MUTANT, function="query", find="x > 1", replace="x > 2", text=True)
    assert "WHERE x > 2" in mutated(query, source)[1]
    constant = replace(MUTANT, function="", find="LIMIT = 3", replace="LIMIT = 4")
    assert "LIMIT = 4" in mutated(constant, source)[1]


@pytest.mark.parametrize(
    "change",
    [
        {"find": "n + 2"},
        {"times": 2},
        {"function": "Box.length"},
        {"argument": "near"},
        {"replace": "pass"},
    ],
)
def test_an_entry_that_does_not_apply_is_refused(
    source: Path, change: dict[str, str | int]
) -> None:
    with pytest.raises(DoesNotApply):
        mutated(replace(MUTANT, **change), source)  # type: ignore[arg-type]


def test_a_test_that_is_gone_is_named() -> None:
    gone = replace(MUTANT, tests=("tests/test_mutants.py::test_nothing", "tests/none.py"))
    assert missing_tests(gone, ROOT) == list(gone.tests)

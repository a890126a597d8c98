"""Documentation is run: code blocks, console blocks with their output, and every named test."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from coinhaze import cli
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.observer.policies import POLICIES

ROOT = Path(__file__).parents[2]
# Those that are written by hand: docs/reference.py makes the others, whose examples are docstrings.
GENERATED = {"api.md", "cli.md"}
WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in GENERATED]
PAGES = [ROOT / "README.md", *WRITTEN]
LONG = ("desiderata.md",)  # whose examples take their time; tests/golden has the command's answers


@pytest.fixture(autouse=True)
def _unregister() -> Iterator[None]:
    """Forget measures and policies that a page registers."""
    before = {entry.name for registry in (COMPARATORS, POLICIES) for entry in registry}
    yield
    for registry in (COMPARATORS, POLICIES):
        for name in set(registry.names()) - before:
            registry.remove(name)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.long] if p.name in LONG else []) for p in PAGES],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_code_on_the_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "96")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")  # statements are dated
    for csv in blocks(page, "csv"):
        Path("transfers.csv").write_text(csv)
    for toml in blocks(page, "toml"):
        Path("report.toml").write_text(toml)
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in blocks(page, "python"):
            exec(compile(code, str(page), "exec"), namespace)
    for console in blocks(page, "console"):
        for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            if not command.startswith("coinhaze "):
                continue
            monkeypatch.setattr(sys, "argv", shlex.split(command))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as stop:
                cli.main()
            assert stop.value.code == 0
            assert strip_ends(printed.getvalue()) == strip_ends(expected)


def test_the_readme_shows_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "96")
    monkeypatch.setattr(sys, "argv", ["coinhaze", "demo"])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
        cli.main()
    shown = strip_ends(blocks(ROOT / "README.md", "text")[0])
    assert len(shown) > 10
    assert "\n".join(shown) in "\n".join(strip_ends(printed.getvalue()))


def strip_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_every_entry_of_paper_to_code_exists() -> None:
    entries = re.findall(
        r"`(coinhaze[\w.]*):([\w.]+)`", (ROOT / "docs/paper-to-code.md").read_text()
    )
    assert len(entries) >= 25
    for module, path in entries:
        thing: object = import_module(module)
        for name in path.split("."):
            thing = getattr(thing, name)


def test_every_test_named_in_the_docs_exists() -> None:
    named = {
        match
        for page in PAGES
        for match in re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", page.read_text())
    }
    assert len(named) >= 10
    for file, function in named:
        text = (ROOT / file).read_text()
        assert f"def {function}(" in text if function else text


def test_links_between_pages_lead_somewhere() -> None:
    """To a file, and to a heading of it where one is named."""
    named = 0
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {target}"
            if heading:
                assert heading in anchors(found), f"{page.name}: {target}#{heading}"
                named += 1
    assert named > 2


def anchors(page: Path) -> set[str]:
    """Give what headings of a page are linked by."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_modules_and_functions_named_in_the_docs_exist() -> None:
    named = {
        (page.name, *match)
        for page in [ROOT / "CONTRIBUTING.md", *PAGES]
        for match in re.findall(r"`(coinhaze(?:\.\w+)+)(?::([\w.]+))?[(`]", page.read_text())
    }
    assert len(named) > 40
    for page, path, attribute in named:
        parts = path.split(".")
        module = max(
            (".".join(parts[:n]) for n in range(1, len(parts) + 1) if is_module(parts[:n])), key=len
        )
        thing: object = import_module(module)
        for name in [*parts[module.count(".") + 1 :], *filter(None, attribute.split("."))]:
            assert hasattr(thing, name), f"{page}: {path} {attribute}"
            thing = getattr(thing, name)


def is_module(parts: list[str]) -> bool:
    path = ROOT.joinpath("src", *parts)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_files_named_in_the_docs_exist() -> None:
    for page in PAGES:
        for path in re.findall(r"`((?:src|benchmarks|docs)/[\w/.-]+\.\w+)\b", page.read_text()):
            # What is built is there once somebody has.
            built = path.startswith("docs/_build/")
            assert built or (ROOT / path).exists(), f"{page.name}: {path}"

"""The reference pages are complete: every public name with an example, every command and option."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import click
import pytest

import coinhaze
from coinhaze import cli

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "reference.py"))


def test_every_public_name_is_in_one_group(reference: dict[str, Any]) -> None:
    grouped = [name for names in reference["GROUPS"].values() for name in names]
    assert sorted(grouped) == coinhaze.__all__
    page = reference["api_page"]()
    for name in coinhaze.__all__:
        assert f"### `coinhaze.{name}`\n" in page


def test_every_public_name_has_an_example(reference: dict[str, Any]) -> None:
    """In its docstring, which the tests run; a package's may be those of what it exports."""
    for name in coinhaze.__all__:
        thing = getattr(coinhaze, name)
        texts = [inspect.getdoc(thing) or ""]
        if inspect.ismodule(thing):
            texts += [inspect.getdoc(getattr(thing, inner)) or "" for inner in thing.__all__]
        assert any(">>> " in text for text in texts), name
    page = reference["api_page"]()
    assert page.count("```pycon") >= len(coinhaze.__all__)


def test_pages_hold_no_address_of_memory(reference: dict[str, Any]) -> None:
    """They are the same whenever they are written."""
    assert " at 0x" not in reference["api_page"]() + reference["cli_page"]()


def test_every_command_is_shown_with_its_options(reference: dict[str, Any]) -> None:
    page = reference["cli_page"]()
    sections = dict(re.findall(r"^## `coinhaze ([\w -]+)`\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    context = click.Context(cli.cli)
    expected = 0
    for name in cli.COMMANDS:
        command = cli.cli.get_command(context, name)
        assert command is not None
        group = command.commands if isinstance(command, click.Group) else {}
        for path, one in [(name, command), *((f"{name} {k}", c) for k, c in group.items())]:
            expected += 1
            for option in one.params:
                if isinstance(option, click.Option) and not option.hidden:
                    assert all(f"{word}" in sections[path] for word in option.opts), path
    assert len(sections) == expected


def test_the_index_leads_to_every_page() -> None:
    """Each page is in one list of contents, and only there."""
    listed = re.findall(r"^[a-z][\w/-]+$", (DOCS / "index.md").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    stored = {path.stem for path in DOCS.glob("*.md")} - {"index", "api", "cli"}
    assert {*listed} == stored | {"api", "cli", "decisions/index"}

"""The help of every command as text, so that showing it loads no options.

    python -m coinhaze.cli.help_texts > src/coinhaze/cli/help.txt

renews the file, and a test compares it with what commands give. It is for lines of 80 letters; on
narrower terminals, and where plugins may add choices, help is made anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FILE = Path(__file__).with_name("help.txt")
WIDTH = 80
HELP = ("-h", "--help")
PLUGINS = "COINHAZE_PLUGINS"
_ENDS = "\f"  # before each command's text; its name is the first line


def stored_help(args: Sequence[str]) -> str | None:
    """Give the stored help of a command; None for other requests, or where it may differ."""
    if len(args) < 2 or args[-1] not in HELP or os.environ.get(PLUGINS) or _columns() < WIDTH:
        return None
    name = " ".join(args[:-1])
    for text in FILE.read_text(encoding="utf-8").split(_ENDS)[1:]:
        command, _, shown = text.partition("\n")
        if command == name:
            return shown
    return None


def made_helps() -> Iterator[tuple[str, str]]:
    """Give each command and what its help is, made from its options."""
    import click

    from coinhaze.cli import cli

    def walk(
        command: click.Command, context: click.Context, path: str
    ) -> Iterator[tuple[str, str]]:
        if path:
            yield path, command.get_help(context) + "\n"
        for name in command.list_commands(context) if isinstance(command, click.Group) else ():
            assert isinstance(command, click.Group)
            found = command.get_command(context, name)
            assert found is not None
            below = click.Context(found, info_name=name, parent=context)
            yield from walk(found, below, f"{path} {name}".strip())

    top = click.Context(
        cli, info_name="coinhaze", terminal_width=WIDTH - 2, help_option_names=list(HELP)
    )
    yield from walk(cli, top, "")


def _columns() -> int:
    """Count the columns of the terminal; where there is none help is made for 80."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdigit() and int(stated):
        return int(stated)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or WIDTH  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return WIDTH


if __name__ == "__main__":
    sys.stdout.write("".join(f"{_ENDS}{name}\n{text}" for name, text in made_helps()))

"""The reference pages, from docstrings and from the commands' own options.

`api_page()` and `cli_page()` are written when the documentation is built (docs/conf.py); nothing of
them is stored, so that neither can be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

import coinhaze
from coinhaze import cli
from coinhaze.cli.help_texts import HELP

# Groups of public names, by the order in which a user meets them; a test holds them complete.
GROUPS = {
    "From a ledger to scores": ["read", "transaction_graph", "absorbing_chain", "score", "plan"],
    "One coin": ["origins", "destinations", "Origins", "Destinations"],
    "What they give": ["Scores", "NodeScore", "Summary", "Plan"],
    "Ledgers, graphs and chains": [
        "CoinLedger",
        "AccountLedger",
        "TransactionGraph",
        "AbsorbingChain",
        "History",
        "Session",
    ],
    "Money in order, and money of a list": ["lots", "Lots", "taint", "Taint"],
    "Informed observers, and what coins share": [
        "informed",
        "InformedBits",
        "shared",
        "since",
        "SharedOrigins",
        "Since",
    ],
    "CoinJoins": ["link_matrix", "coinjoin_links"],
    "Other measures, and your own": [
        "compare_measures",
        "ComparedScores",
        "register_comparator",
        "register_policy",
    ],
    "Solvers": ["sweep", "eliminate", "series"],
    "Applications": [
        "compare",
        "explore",
        "growth",
        "lab",
        "robustness",
        "screening",
        "wallet",
    ],
    "Errors": [
        "CoinhazeError",
        "UsageError",
        "InputError",
        "LedgerError",
        "OpeningError",
        "UnknownName",
        "PolicyError",
        "SourceUnreachable",
        "NotAnswering",
        "AccuracyError",
        "ResourceError",
    ],
}


def api_page() -> str:
    """Give the page of every public name: signature, docstring, example, methods."""
    lines = [
        "# Python API",
        "",
        "Every public name of `coinhaze`, from its docstring; the examples are run by the tests.",
        "Options that functions share are on the page of [options](options.md), terms in the",
        "[glossary](glossary.md).",
        "",
    ]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            lines += _entry(f"coinhaze.{name}", getattr(coinhaze, name), level=3)
    return "\n".join(lines) + "\n"


def _entry(path: str, thing: object, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{path}`"
    yield ""
    if inspect.isclass(thing) or inspect.isroutine(thing):
        yield from _signature(path.rpartition(".")[2], thing)
    yield from _markdown(inspect.getdoc(thing) or "")
    if inspect.ismodule(thing):
        for name in thing.__all__:
            yield from _entry(f"{path}.{name}", getattr(thing, name), level + 1)
    elif inspect.isclass(thing):
        yield from _members(thing)


def _signature(name: str, thing: object) -> Iterator[str]:
    if inspect.isclass(thing) and thing.__init__ is object.__init__:
        return
    try:
        signature = inspect.signature(thing)  # type: ignore[arg-type]
    except ValueError:
        return
    words = list(_parameters(signature))
    given = signature.return_annotation
    returned = "" if given in (inspect.Signature.empty, None, "None") else f" -> {given}"
    line = f"{name}({', '.join(words)}){returned}"
    yield "```text"
    if len(line) <= 90:
        yield line
    else:
        yield from (f"{name}(", *(f"    {word}," for word in words), f"){returned}")
    yield "```"
    yield ""


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    named = False
    for parameter in signature.parameters.values():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            yield "*"
        named = named or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        default = parameter.default
        shown = getattr(default, "__name__", repr(default))
        yield stars + parameter.name + kind + ("" if default is parameter.empty else f" = {shown}")


def _markdown(docstring: str) -> Iterator[str]:
    """Give a docstring as Markdown, its examples as blocks."""
    shown = False
    for line in docstring.splitlines():
        if line.startswith(">>> ") and not shown:
            yield "```pycon"
            shown = True
        elif shown and not line.strip():
            yield "```"
            shown = False
        yield line
    if shown:
        yield "```"
    yield ""


def _members(kind: type) -> Iterator[str]:
    rows = []
    for name, member in inspect.getmembers_static(kind):
        member = getattr(member, "__func__", member)
        function = getattr(member, "func", None) or getattr(member, "fget", None) or member
        home = getattr(function, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("coinhaze") or not callable(function):
            continue
        call = "" if function is not member else "()"
        first = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| `{name}{call}` | {_cell(first)} |")
    if rows:
        yield from ("| member | |", "|---|---|", *rows, "")


def cli_page() -> str:
    """Give the page of every command: usage, what it does, options."""
    lines = [
        "# Commands",
        "",
        "Every command with its options, as `coinhaze COMMAND --help` shows them. What an option",
        "is in Python is on the page of [options](options.md).",
        "",
        cli.exit_codes(),
        "",
    ]
    for path, command in commands():
        lines += _command(path, command)
    return "\n".join(lines) + "\n"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Give every command with its path, those of groups after their group."""
    context = click.Context(cli.cli, info_name="coinhaze")
    for name in cli.cli.list_commands(context):
        command = cli.cli.get_command(context, name)
        assert command is not None
        yield f"coinhaze {name}", command
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                yield f"coinhaze {name} {inner}", command.commands[inner]


def _command(path: str, command: click.Command) -> Iterator[str]:
    # A command remembers its help option from the first context that looks for it.
    context = click.Context(command, info_name=path, help_option_names=list(HELP))
    yield f"## `{path}`"
    yield ""
    yield "```text"
    yield " ".join([path, *command.collect_usage_pieces(context)])
    yield "```"
    yield ""
    yield from _markdown(re.sub(r"[\b]\n?", "", inspect.cleandoc(command.help or "")))
    rows = []
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            record = option.get_help_record(context)
            if record:
                spelling = record[0].replace("|", r"\|")
                rows.append(f"| `{spelling}` | {_cell(record[1])} |")
    if rows:
        yield from ("| option | meaning |", "|---|---|", *rows, "")


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", r"\|").replace("<", r"\<")

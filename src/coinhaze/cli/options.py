"""Options that several commands share, and what they turn into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coinhaze.observer.policies import POLICIES, Policy, score_policies

if TYPE_CHECKING:
    Choice = click.Choice[str]
else:
    Choice = click.Choice

F = TypeVar("F", bound=Callable[..., Any])
Choices = tuple[str, ...] | Choice | None
FIGURES = (".png", ".svg", ".pdf")  # what --figure may end in


class PolicyChoice(Choice):
    """A choice of registered policies, as they are when the command runs."""

    def __init__(self, policies: Callable[[], Iterable[Policy]] = score_policies) -> None:
        self.policies = policies
        super().__init__([])

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of the policies."""
        return tuple(policy.name for policy in self.policies())

    @choices.setter
    def choices(self, none: object) -> None:
        """Keep nothing: the registry has them."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Take a name, or the other spelling of one."""
        found = POLICIES.get(value)
        return super().convert(value if found is None else found.name, param, ctx)


class LateHelp(click.Option):
    """An option whose help is made when it is shown: it lists what is registered by then."""

    def __init__(self, names: Sequence[str], *, words: Callable[[], str], **settings: Any) -> None:
        super().__init__(names, **settings)
        self.words = words

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Give the option and its help."""
        self.help = self.words()
        return super().get_help_record(ctx)


def comparator_words() -> str:
    """Say which measures can be put beside the bits."""
    from coinhaze.measures.comparators.registry import COMPARATORS

    return f"Measures beside the bits, with commas between them: {', '.join(COMPARATORS.names())}."


# Options are listed once: name, type, help. Each becomes the setting of the same name.
_GRAPH = (
    ("--format", None, ""),  # its help names the formats that are registered
    ("--from", None, "Where a window of a store begins: a height, or a time."),
    ("--to", None, "Where it ends, that block or second included."),
    ("--token", None, "Which token of a store, by its address."),
    (
        "--unknown",
        ("error", "leave-out"),
        "Coins spent whose value nobody tells: refuse, or leave out what hangs on them.",
    ),
    ("--view", ("coin", "address", "account"), "What nodes stand for."),
    ("--time", ("stationary", "temporal"), "Whether the order of payments counts."),
    ("--opening", None, "surplus, observed, or a FILE account,amount. [default: surplus]"),
    ("--mint", ("each", "one"), "Each mint a source, or the zero address one. [default: each]"),
    ("--pools", ("each", "merged"), "Shielded pools one by one or as one. [default: each]"),
    (
        "--clusters",
        None,
        "A FILE address,cluster, or common-input, change (see coinhaze knowledge).",
    ),
)
_CHAIN = (
    ("--policy", PolicyChoice(score_policies), "How money is split over its origins."),
    ("--listed", None, "A FILE with one name a line: score against these only."),
    ("--links", None, "A FILE payment,node,probability, and confidence if you like."),
    ("--history", None, "A FILE pool,value: what entered pools before."),
)


def model_options(command: F) -> F:
    """Add every option that shapes graph and chain."""
    return _with(command, _GRAPH + _CHAIN)


def graph_options(command: F) -> F:
    """Add every option that shapes the graph."""
    return _with(command, _GRAPH)


_FLAGS = (
    ("--top-up", "Raise an incomplete opening table to what was spent."),
    ("--complete", "The ledger begins with its chain: an unknown coin is an error."),
)


def _with(command: F, options: Sequence[tuple[str, Choices, str]]) -> F:
    for name, text in _FLAGS:
        command = click.option(name, is_flag=True, help=text)(command)
    return _added(command, options)


def flag_options(command: F) -> F:
    """Add the options that shape the graph and are given or not."""
    return _with(command, ())


def option_kinds() -> dict[str, tuple[str, ...] | type[bool] | None]:
    """Give the name of every option that shapes graph and chain: choices, a flag, or any text."""
    kinds: dict[str, tuple[str, ...] | type[bool] | None] = {
        name.removeprefix("--"): choices.choices if isinstance(choices, click.Choice) else choices
        for name, choices, _ in _GRAPH + _CHAIN
    }
    return {**kinds, **{name.removeprefix("--"): bool for name, _ in _FLAGS}}


def some_options(*names: str) -> Callable[[F], F]:
    """Add some of the options that shape graph and chain, by name."""
    known = {option[0]: option for option in _GRAPH + _CHAIN}
    return lambda command: _added(command, [known[name] for name in names])


def _added(command: F, options: Sequence[tuple[str, Choices, str]]) -> F:
    for name, choices, text in reversed(options):
        kind = choices if isinstance(choices, click.Choice) else Choice(choices) if choices else str
        cls = FormatOption if name == "--format" else click.Option
        command = click.option(name, type=kind, help=text, cls=cls)(command)
    return command


class FormatOption(click.Option):
    """--format, whose help names every format that is registered when it is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Give the option and its help."""
        from coinhaze.formats.registry import format_help

        self.help = format_help()
        return super().get_help_record(ctx)


def strict_option(command: F) -> F:
    """Add --strict."""
    return click.option(
        "--strict",
        is_flag=True,
        help="A failed completeness check or an unreached accuracy is an error: write nothing.",
    )(command)


def warn(text: str) -> None:
    """Say on stderr that a result is less than what was requested."""
    click.echo(f"warning: {text}", err=True)


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Turn options into settings of the library, reading the files they name."""
    from coinhaze.solve.source import read_options

    return read_options(given)


def accuracy_of(text: str, *words: str) -> Any:
    """Read --accuracy: one of the words a command knows, or a number of bits."""
    from coinhaze.errors import UsageError

    try:
        return text if text in words else float(text)
    except ValueError:
        known = f"{', '.join(words)} or a number of bits"
        raise UsageError(f"--accuracy is {known}, not {text!r}") from None


def named_files(given: dict[str, Any]) -> list[Path]:
    """List the files that options name, for provenance."""
    names = ("opening", "listed", "links", "history", "clusters")
    paths = [Path(given[n]) for n in names if given.get(n)]
    return [p for p in paths if p.is_file()]


def tell_notes(notes: tuple[str, ...]) -> None:
    """Say on stderr what was passed over."""
    for note in notes:
        click.echo(f"note: {note}", err=True)

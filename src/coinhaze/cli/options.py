"""Options of commands, made from `coinhaze.options`, and what they turn into."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from coinhaze.observer.policies import POLICIES, Policy
from coinhaze.options import FORMER, MODEL, Option, known, options_of

if TYPE_CHECKING:
    from coinhaze.solve.pool import WorkerCluster

    Choice = click.Choice[str]
    ParamType = click.ParamType[str | float]
else:
    Choice = click.Choice
    ParamType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])
# Simulations and samples are the same every time, unless another seed is given.
SEED = known("seed", default=1, default_words="")
_PERCENTAGE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?%")
TABLES = (".csv", ".parquet")  # what --output may end in
FIGURES = (".png", ".svg", ".pdf")  # what --figure may end in


class Command(click.Command):
    """A command that understands former spellings of its options, and says what replaced them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace former spellings before anything else is done."""
        return super().parse_args(ctx, self._replaced(args))

    def _replaced(self, args: list[str]) -> list[str]:
        former = FORMER.get(self.name or "", {})
        with_value = {
            spelling
            for p in self.params
            if isinstance(p, click.Option) and not p.is_flag
            for spelling in p.opts
        }
        left, made = list(args), list[str]()
        while left:
            word = left.pop(0)
            if word == "--":
                return [*made, word, *left]
            name, equals, value = word.partition("=")
            followed = value if equals else (left[0] if left else "")
            if f"{name} {followed}" in former:
                left = left if equals else left[1:]
                new, word, equals = former[f"{name} {followed}"], f"{name} {followed}", ""
            elif name in former:
                new, word = former[name], name
            else:
                made.append(word)
                if word in with_value and left:
                    made.append(left.pop(0))
                continue
            say_replaced(word, new or "the default")
            words = new.split()
            made += [*words[:-1], f"{words[-1]}={value}"] if equals else words
            if not equals and words and words[-1] in with_value and left:
                made.append(left.pop(0))
        return made


def say_replaced(former: str, new: str) -> None:
    """Say on stderr what replaced a former spelling."""
    click.echo(f"note: {former} is now {new}", err=True)


class PolicyChoice(Choice):
    """A choice of registered policies, as they are when the command runs."""

    def __init__(self, policies: Callable[[], Iterable[Policy]], *, several: bool = False) -> None:
        self.policies = policies
        self.several = several
        super().__init__([])

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of the policies."""
        return tuple(policy.name for policy in self.policies())

    @choices.setter
    def choices(self, none: object) -> None:
        """Keep nothing: the registry has them."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Take a name, or the other spelling of one; where there can be several, with commas."""
        if self.several:  # the library takes both spellings, and says which names it does not know
            return str(value)
        found = POLICIES.get(value)
        if found is not None and value != found.name:
            say_replaced(value, found.name)
            value = found.name
        return super().convert(value, param, ctx)


class NumberOrWord(ParamType):
    """A number, or one of some words."""

    name = "number"

    def __init__(self, option: Option) -> None:
        self.option = option

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read it."""
        from coinhaze.errors import UsageError

        if value in self.option.choices or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            words = ", ".join((*self.option.choices, "a number of bits"))
            text = " or ".join(words.rsplit(", ", 1))
            raise UsageError(f"{self.option.spelling} is {text}, not {value!r}") from None


class NumberRange(click.FloatRange):
    """A number within ends; a percentage is refused with the number to write."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read it."""
        if isinstance(value, str) and (share := _PERCENTAGE.fullmatch(value)):
            self.fail(f"{value!r} is no number: write {float(share[1]) / 100:g}", param, ctx)
        return super().convert(value, param, ctx)


class CommandOption(click.Option):
    """An option of `coinhaze.options` as a command offers it."""

    def __init__(self, option: Option) -> None:
        self.option = option
        spelling = option.spelling
        if option.kind is bool and option.default is True:
            spelling += f"/--no-{spelling.removeprefix('--')}"
        flag = option.kind is bool
        # A default that is given counts as a value, None too: a required option has none.
        usual = None if option.passed_on or option.several else option.default
        given: dict[str, Any] = {} if option.required else {"default": usual}
        super().__init__(
            [*([option.short] if option.short else []), spelling, option.name],
            type=None if flag else _type_of(option),
            is_flag=flag,
            multiple=option.several,
            required=option.required,
            hidden=option.hidden,
            metavar=None if flag else option.shown_metavar() or None,
            help=option.help,
            **given,
        )

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Give its line of the help, with what is registered at this moment."""
        self.help = self.option.help_text()
        return super().get_help_record(ctx)


def _type_of(option: Option) -> Any:
    if option.registry and option.only_choices:
        return PolicyChoice(option.registered(), several=option.several)
    if option.only_choices:
        return Choice(option.choices)
    if option.kind is float and (option.choices or option.metavar):
        return NumberOrWord(option)
    if option.minimum is option.maximum is None and option.kind in (int, float):
        return option.kind
    if option.kind in (int, float):
        kind = click.IntRange if option.kind is int else NumberRange
        ends = {"min_open": option.above_minimum, "max_open": option.below_maximum}
        return kind(option.minimum, option.maximum, **ends)  # type: ignore[arg-type]
    return click.Path(path_type=Path) if option.kind is Path else str


def takes(*wanted: type | str | Option) -> Callable[[F], F]:
    """Add options to a command: all of a subject, one by its name, or one that differs here."""
    found: dict[str, Option] = {}
    for one in wanted:
        if isinstance(one, Option):
            found[one.name] = one  # where its subject has it already, in its place
        elif isinstance(one, str):
            found[one] = known(one)
        else:
            found |= {option.name: option for option in options_of(one) if option.command_line}

    def add(command: F) -> F:
        params = command.__dict__.setdefault("__click_params__", [])
        params += [CommandOption(option) for option in reversed(found.values())]
        return command

    return add


def ledger_settings() -> dict[str, Option]:
    """Give the options that shape graph and chain by what they are called in a settings file."""
    every = [option for subject in MODEL for option in options_of(subject)]
    return {o.spelling.removeprefix("--"): o for o in every if o.command_line}


def command_line() -> str:
    """Give the command so that a shell takes it again, for provenance, without what is secret."""
    from coinhaze.errors import without_secrets

    return shlex.join(["coinhaze", *map(without_secrets, sys.argv[1:])])


def check_files(
    inputs: Sequence[str | Path],
    output: Path | None,
    figure: Path | None = None,
    *,
    suffixes: Sequence[str] = TABLES,
) -> None:
    """Refuse, before any work is done, an --output or --figure that cannot be written."""
    from coinhaze.report.files import check_output

    if output is not None:
        check_output(output, inputs, suffixes=suffixes)
    if figure is not None:
        check_output(figure, inputs, suffixes=FIGURES)


def show_found(
    text: Callable[[], Any], json: Callable[[], str], *, as_json: bool, output: Path | None
) -> None:
    """Print JSON if that is wanted, else a text for people unless a file was written."""
    if as_json:
        click.echo(json(), nl=False)
    elif output is None:
        from coinhaze.report.terminal import show

        show(text())


def tell_written(*paths: Path) -> None:
    """Say on stderr which files were written."""
    for path in paths:
        click.echo(f"wrote {path}", err=True)


def write_text(path: Path, text: str) -> None:
    """Write a text whole or not at all, and say so."""
    from coinhaze.report import files

    tell_written(files.write_text(path, text))


def form_of(form: str | None, as_json: bool) -> str | None:
    """Give what to write if --json, or the former --as, asks for one form."""
    from coinhaze.errors import UsageError

    if form is not None:
        say_replaced(f"--as {form}", "-o FILE, whose name says what is written")
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --as {form} ask for two things")
    return "json" if as_json else form


def warn(text: str) -> None:
    """Say on stderr that a result is less than what was requested."""
    click.echo(f"warning: {text}", err=True)


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Turn options into settings of the library, reading the files they name."""
    from coinhaze.solve.source import read_options

    return read_options(given)


def nodes_of(given: tuple[str, ...]) -> Literal["sinks", "all"] | list[str]:
    """Read --nodes: a word, or names and files of names."""
    from coinhaze.errors import UsageError
    from coinhaze.formats.lists.knowledge import read_listed

    words = [name for name in given if name in known("nodes").choices]
    if len(given) > 1 and words:
        raise UsageError(f"--nodes is {words[0]}, or names: not both")
    if not given or words:
        return "all" if words == ["all"] else "sinks"
    names: list[str] = []
    for name in given:
        names += read_listed(name) if Path(name).is_file() else [name]
    return names


WORKERS = ("workers", "tls_ca", "tls_cert", "tls_key")


@contextmanager
def open_cluster(options: Mapping[str, Any]) -> Iterator[WorkerCluster | None]:
    """Open the workers that options name, if any, until the command is done."""
    given = {name: options.get(name) for name in WORKERS}
    if all(value is None for value in given.values()):
        yield None
        return
    from coinhaze.solve.pool.cluster import opened, refuse_threads

    workers = given.pop("workers")
    refuse_threads(workers, options.get("threads"))
    with opened(workers, **given) as cluster:
        yield cluster


def labels_of(files: tuple[str, ...]) -> dict[str, str]:
    """Read --labels: names of addresses, those of the last file first."""
    from coinhaze.formats.lists.labels import read_labels

    return {address: label for file in files for address, label in read_labels(file).names.items()}


def owners_of(file: str | None) -> dict[str, str] | None:
    """Read --owners: who addresses belong to."""
    from coinhaze.formats.lists.knowledge import read_clusters

    return None if file is None else read_clusters(file)


def named_files(given: Mapping[str, Any]) -> list[Path]:
    """List the files that options name, for provenance."""
    names = [o.name for o in ledger_settings().values() if o.is_file]
    paths = [Path(given[n]) for n in names if given.get(n)]
    return [p for p in paths if p.is_file()]


def inputs_of(
    files: Iterable[str],
    options: Mapping[str, Any],
    *,
    labels: tuple[str, ...] = (),
    owners: str | None = None,
    nodes: tuple[str, ...] = (),
) -> list[str | Path]:
    """List all files that a command reads."""
    inputs: list[str | Path] = [*files, *named_files(options), *labels]
    inputs += [] if owners is None else [owners]
    return inputs + [name for name in nodes if Path(name).is_file()]


def tell_notes(notes: tuple[str, ...]) -> None:
    """Say on stderr what was passed over."""
    for note in notes:
        click.echo(f"note: {note}", err=True)

"""What one option is: its help, spelling, choices and range, as commands show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any, TypedDict, Unpack


@dataclass(frozen=True)
class Option:
    """One option as a command shows it."""

    help: str
    spelling: str = ""  # on the command line; from the field's name unless given
    choices: tuple[str, ...] = ()  # the only values, or words beside numbers, names and files
    only_choices: bool = False
    metavar: str = ""  # what a value is called in help
    kind: type = str  # of one value: bool, int, float, Path or str
    several: bool = False  # whether it can be repeated
    minimum: float | None = None
    maximum: float | None = None
    above_minimum: bool = False  # whether the minimum itself is refused
    below_maximum: bool = False
    short: str = ""
    registry: str = ""  # "module:function" that lists the choices as they are at that moment
    command_line: bool = True  # whether commands offer it, not the API alone
    required: bool = False
    hidden: bool = False  # a former spelling that is still understood
    default: object = None
    default_words: str = ""  # how help says a default that is no plain value
    passed_on: bool = False  # left out unless given, so that the library's own default holds
    name: str = ""
    subject: type = object

    @property
    def is_file(self) -> bool:
        """Whether a value names a file."""
        return "FILE" in self.metavar

    def all_choices(self) -> tuple[str, ...]:
        """Give the choices, those of a registry if it has one."""
        if not self.registry:
            return self.choices
        return tuple(getattr(entry, "name", entry) for entry in self.registered()())

    def registered(self) -> Callable[[], Iterable[Any]]:
        """Give the function of its registry that lists the choices."""
        module, _, path = self.registry.partition(":")
        function: Callable[[], Iterable[Any]] = attrgetter(path)(import_module(module))
        return function

    def shown_metavar(self) -> str:
        """Give what help calls a value: the words it can be, and what else."""
        if self.only_choices or not self.metavar:
            return self.metavar
        return "|".join((*self.choices, self.metavar))

    def help_text(self) -> str:
        """Give the help with choices of a registry and the default, always in the same words."""
        listed = self.registry and not self.only_choices  # else they are shown before the help
        names = f" One of {', '.join(self.all_choices())}." if listed else ""
        said = self.default_words or self._plain_default()
        return self.help + names + (f" [default: {said}]" if said else "")

    def _plain_default(self) -> str:
        if self.default is None or isinstance(self.default, bool | tuple):
            return ""
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


class AboutField(TypedDict, total=False):
    """What can be said of an option beside its default and its help."""

    spelling: str
    choices: tuple[str, ...]
    only_choices: bool
    metavar: str
    several: bool
    minimum: float
    maximum: float
    above_minimum: bool
    below_maximum: bool
    short: str
    registry: str
    command_line: bool
    required: bool
    hidden: bool
    default_words: str
    passed_on: bool


class About(AboutField, total=False):
    """What can be different in one command."""

    help: str
    default: object


def option(default: Any, help: str, **about: Unpack[AboutField]) -> Any:
    """Define a field of a subject: its default, its help, and what else `Option` can tell."""
    return field(default=default, metadata={"option": Option(help, **about)})

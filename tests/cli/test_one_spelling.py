"""One spelling per idea over all commands; former spellings work and say what replaced them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import click
import pytest

from coinhaze.cli import COMMANDS, cli
from coinhaze.cli.options import CommandOption
from coinhaze.options import FORMER, SUBJECTS, Option, options_of

from .conftest import Run

CONTEXT = click.Context(cli)


def _command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def _commands() -> dict[str, click.Command]:
    """Give every command, and those of a group by both names."""
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = _command(name)
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        found |= {name: command} | {f"{name} {word}": one for word, one in inner}
    return found


def _options() -> dict[str, dict[str, CommandOption]]:
    """Give every option that is shown: by spelling, then by command."""
    found: dict[str, dict[str, CommandOption]] = defaultdict(dict)
    for name, command in _commands().items():
        for param in command.params:
            if isinstance(param, click.Argument) or "--help" in param.opts:
                continue
            assert isinstance(param, CommandOption), f"{name} {param.opts}: not made from options"
            if not param.hidden:
                found[param.opts[-1]][name] = param
    return found


def test_one_spelling_has_one_meaning_type_and_wording_in_all_commands() -> None:
    for spelling, by_command in _options().items():
        params = list(by_command.values())
        assert len({p.option.name for p in params}) == 1, spelling
        assert len({p.option.help for p in params}) == 1, spelling
        assert len({type(p.type) for p in params}) == 1, spelling
        assert len({p.option.kind for p in params}) == 1, spelling
        assert len({(p.option.minimum, p.option.maximum) for p in params}) == 1, spelling
        assert len({tuple(p.secondary_opts) for p in params}) == 1, spelling


def test_one_idea_has_one_spelling() -> None:
    every = [option for subject in SUBJECTS for option in options_of(subject)]
    for told in ("name", "spelling", "help"):
        values = [getattr(option, told) for option in every]
        assert len(set(values)) == len(values), told
    shown = {o.spelling for o in every if o.command_line and not o.hidden}
    replaced = {"--history", "--exposed", "--width", "--mean-error", "--conventions", "--as"}
    replaced |= {"--coin", "--coins", "--most"}
    assert not shown & replaced
    assert not _options().keys() & replaced


def test_all_help_shows_defaults_in_the_same_words() -> None:
    for name, command in _commands().items():
        names = list(cli.context_settings["help_option_names"])  # commands remember them
        shown = command.get_help(click.Context(command, info_name=name, help_option_names=names))
        text, unwrapped = " ".join(shown.split()), "".join(shown.split())
        for param in command.params:
            if isinstance(param, CommandOption) and not param.hidden:
                assert "".join(param.option.help_text().split()) in unwrapped
        for default in re.findall(r"\[?[Dd]efault[^\]]*\]?", text):
            assert re.fullmatch(r"\[default: .+\]", default), f"{name}: {default}"


def test_every_option_is_taken_by_a_command() -> None:
    taken = {param.option.name for by in _options().values() for param in by.values()}
    every = {o.name: o for subject in SUBJECTS for o in options_of(subject)}
    assert {n for n, o in every.items() if o.command_line and not o.hidden} == taken


@pytest.mark.parametrize("name", FORMER)
def test_former_spellings_lead_to_options_the_command_has(name: str) -> None:
    now = {s for p in _command(name).params for s in p.opts}
    for former, new in FORMER[name].items():
        assert former.split()[0] not in now - {"--as"}
        assert not new or new.split()[0] in now


CASES = {
    "score transfers.csv --all": "score transfers.csv --nodes all",
    "score transfers.csv --history=h.csv": "score transfers.csv --pool-history=h.csv",
    "origins transfers.csv carol --as json": "origins transfers.csv carol --json",
    "origins transfers.csv --as=json -- carol": "origins transfers.csv --json -- carol",
    "wallet town --coins c.txt --exposed e.txt": "wallet town --nodes c.txt --listed e.txt",
    "wallet n --coins c --width 1 --most 2": "wallet n --nodes c --accuracy 1 --max-transactions 2",
    "compare a --mean-error 0.1 --conventions paper": "compare a --accuracy 0.1 --preset paper",
    "compare a --conventions ours --walks 0": "compare a --walks 0",
    "robustness a --coin carol": "robustness a --nodes carol",
    "sensitivity a --history h": "sensitivity a --pool-history h",
    "serve a --list bad=list.txt": "serve a --listed bad=list.txt",
    # What looks like a former spelling may be the value of another option, or an argument.
    "score a --colours --history": "score a --colours --pool-history",
    "score a --links --all": "score a --links --all",
    "score -- --all": "score -- --all",
}


@pytest.mark.parametrize("line", CASES)
def test_former_spellings_mean_what_replaced_them(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *args = line.split()
    command = _command(name)
    assert command._replaced(args) == CASES[line].split()[1:]  # type: ignore[attr-defined]
    changed = line != CASES[line]
    assert ("is now" in capsys.readouterr().err) == changed


def test_a_former_spelling_says_what_replaced_it_on_one_line(run: Run, transfers: Path) -> None:
    code, now, quiet = run("score", transfers, "--nodes", "all", "--json")
    assert (code, "is now" in quiet) == (0, False)
    code, before, said = run("score", transfers, "--all", "--json")
    assert code == 0
    assert "note: --all is now --nodes all\n" in said
    assert before.replace("--all", "--nodes all") == now


def test_the_other_word_for_a_policy_still_works(run: Run, transfers: Path) -> None:
    code, now, quiet = run("score", transfers, "--policy", "proportional", "--json")
    assert (code, "is now" in quiet) == (0, False)
    code, before, said = run("score", transfers, "--policy", "haircut", "--json")
    assert (code, "note: haircut is now proportional\n" in said) == (0, True)
    assert before.replace("haircut", "proportional") == now


def test_help_of_an_option_says_default_and_choices() -> None:
    option = Option("How many.", default=3)
    assert option.help_text() == "How many. [default: 3]"

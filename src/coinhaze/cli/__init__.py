"""The command: `coinhaze`; the file of a subcommand is loaded when it is called."""

from __future__ import annotations

import io
import os
import sys
import threading
from importlib import import_module

import click

from coinhaze import __version__
from coinhaze.cli.help_texts import stored_help
from coinhaze.errors import (
    CoinhazeError,
    InputError,
    ResourceError,
    hide_wallet_keys,
    shorten,
    without_secrets,
)
from coinhaze.memory_limit import is_out_of_memory, leave, work_in_a_child
from coinhaze.working_folder import refuse_settings

# What the help says of each command: its module is imported only when it is called.
COMMANDS = {
    "compare": "Compare ledgers with the paper's tables and figures.",
    "demo": "Make a small ledger of coins, score it and draw it.",
    "desiderata": "Try measures on what the paper asks of one.",
    "destinations": "Show where the money of one node went.",
    "growth": "Say how many bits money has after each payment.",
    "history": "Score every unspent coin of a chain since its first block.",
    "info": "Say what a ledger holds, after checking every rule.",
    "ingest": "Read files, or a node, into a store.",
    "knowledge": "Find clusters and links with heuristics.",
    "lab": "Try what a privacy technology gains and costs.",
    "merge": "Merge what coinhaze score --part solved: the scores of one command, byte for byte.",
    "origins": "Show where the money of one node came from.",
    "robustness": "Say how bits fall as an observer learns more.",
    "score": "Score a ledger: how many bits an observer lacks.",
    "screen": "Say what share of each balance came from a list.",
    "sensitivity": "Say how results change with other choices.",
    "serve": "Show ledgers as pages in the browser.",
    "shared": "Say what two coins, or several, have in common.",
    "simulate": "Simulate a week of a ledger.",
    "since": "Say how bits fall as later spends tell more.",
    "verify": "Check every rule of a store, and its sums, again.",
    "wallet": "Say how private a wallet's coins are, and which to spend.",
}
# Commands that share a file, by its name; each other has one of its own.
SHARED_FILES = {
    "ingest": ("ingest", "verify"),
    "origins": ("origins", "destinations", "shared"),
    "robustness": ("robustness", "sensitivity", "desiderata"),
    "score": ("score", "merge"),
    "simulate": ("simulate", "demo"),
    "since": ("since", "growth"),
}
EXIT_CODES = {
    0: "success",
    1: "a bug",
    2: "usage",
    3: "bad input",
    4: "a source that cannot be reached",
    5: "accuracy not reached",
    6: "a memory or time limit",
    10: "exposure above the --limit of screen",
    130: "interrupted",
}


class _Lazy(click.Group):
    """A group whose commands live in modules of their own, so that help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if ctx.obj is not None:
            ctx.obj()
        shared = {command: file for file, names in SHARED_FILES.items() for command in names}
        module = import_module(f"coinhaze.cli.{shared.get(name, name)}")
        command: click.Command = getattr(module, name if name in shared else "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def exit_codes() -> str:
    """Describe all exit codes in a sentence."""
    return f"Exit codes: {', '.join(f'{code} {words}' for code, words in EXIT_CODES.items())}."


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exit_codes(),
)
@click.version_option(__version__, prog_name="coinhaze")
def cli() -> None:
    """Say how many bits an observer of a public ledger lacks to tell where money came from."""


class _WithoutPandas:
    """Lets Arrow not find pandas, which it imports with the first array if it is installed.

    No command uses it, and importing it takes as long as scoring a small ledger.
    """

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("no command uses pandas", name=name)


def main() -> None:
    """Run the command; known faults are one line on stderr and an exit code."""
    try:
        _run()
    except SystemExit as stop:
        leave(stop.code if isinstance(stop.code, int) else 0)
        raise


def _prepare() -> None:
    """Set up this process before a command is loaded."""
    from coinhaze import kernels
    from coinhaze.registry import PLUGINS

    kernels.announce = _say_compiling
    if PLUGINS not in os.environ:
        sys.meta_path.insert(0, _WithoutPandas())


def _say_compiling() -> None:
    click.echo("note: compiling for this machine, once: up to half a minute", err=True)


def _run() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be any bytes
    hide_wallet_keys(" ".join(sys.argv))
    try:
        refuse_settings()
        text = stored_help(sys.argv[1:])
        if text is not None:
            click.echo(text, nl=False)
            sys.exit(0)
        work_in_a_child()
        code = cli.main(prog_name="coinhaze", standalone_mode=False, obj=_prepare)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        click.echo(without_secrets(said.getvalue()), err=True, nl=False)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; say nothing, also not when Python closes stdout.
        sys.stdout = None
        sys.exit(0)
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("coinhaze: interrupted; nothing was left half-written", err=True)
        sys.stdout.flush()
        if threading.active_count() > 1:
            os._exit(130)  # a compiled loop may still run in its thread: do not wait for it
        sys.exit(130)
    except Exception as error:
        # Also what was raised as an error of the input because memory for reading it ran out.
        if is_out_of_memory(error) and not isinstance(error, ResourceError):
            error = ResourceError("out of memory; nothing was left half-written")
        if isinstance(error, UnicodeEncodeError):
            error = InputError(f"a name that is not UTF-8: {shorten(error.object)}: rename it")
        if not isinstance(error, CoinhazeError):
            raise
        click.echo(f"coinhaze: {error}", err=True)
        import traceback  # only here: help should come at once

        # What the command had open is closed now, not while Python ends.
        traceback.clear_frames(error.__traceback__)
        sys.exit(error.exit_code)

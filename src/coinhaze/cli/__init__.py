"""The command: `coinhaze`, one subcommand a file, loaded when it is called."""

from __future__ import annotations

import io
import os
import sys
import threading
from importlib import import_module

import click

from coinhaze import __version__
from coinhaze.errors import CoinhazeError, InputError, ResourceError, shorten
from coinhaze.memory_limit import is_out_of_memory, leave, work_in_a_child
from coinhaze.working_folder import refuse_settings

COMMANDS = (
    "compare",
    "demo",
    "desiderata",
    "growth",
    "info",
    "ingest",
    "knowledge",
    "lab",
    "merge",
    "origins",
    "robustness",
    "score",
    "screen",
    "sensitivity",
    "serve",
    "simulate",
    "verify",
    "wallet",
)


class _Lazy(click.Group):
    """A group whose commands live in modules of their own, so that help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"coinhaze.cli.{name}").command
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="coinhaze")
def cli() -> None:
    """Say how many bits an observer of a public ledger lacks to tell where money came from."""


def main() -> None:
    """Run the command; known faults are one line on stderr and an exit code."""
    try:
        _run()
    except SystemExit as stop:
        leave(stop.code if isinstance(stop.code, int) else 0)
        raise


def _run() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be any bytes
    try:
        refuse_settings()
        work_in_a_child()
        code = cli.main(prog_name="coinhaze", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
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
        sys.exit(error.exit_code)

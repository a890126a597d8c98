"""The working folder is where ledgers lie: nothing in it is imported, or sets anything up.

Ledgers come from strangers, and so may what lies beside them: a `numpy.py`, or settings that
libraries look for where a command is run.
"""

from __future__ import annotations

import os
import sys

from coinhaze.errors import UsageError

# Numba takes the place of its cache from it, and what lies in a cache is run.
NUMBA_SETTINGS = ".numba_config.yaml"


def python_command(*arguments: str) -> list[str]:
    """Give the command for a child process of Python that does not look into its folder."""
    return [sys.executable, "-P", *arguments]


def python_environment() -> dict[str, str]:
    """Give the environment for a child process whose own children shall do the same."""
    return os.environ | {"PYTHONSAFEPATH": "1"}


def drop_from_path() -> None:
    """Take the folder out of the path that `python -m` has put first.

    Nothing is taken out if Python did not put it there, or if coinhaze itself comes from it.
    """
    if sys.flags.safe_path or not sys.path or sys.path[0] not in ("", os.getcwd()):
        return
    package = os.path.dirname(os.path.realpath(__file__))
    if os.path.dirname(package) != os.path.realpath(os.getcwd()):
        del sys.path[0]


def refuse_settings() -> None:
    """Refuse to run beside a file that would set up the compiler."""
    if os.path.exists(NUMBA_SETTINGS):
        raise UsageError(
            f"{NUMBA_SETTINGS} in the working folder would set up the compiler, and can make it "
            "run code: run coinhaze from another folder, or set NUMBA_... variables instead"
        )

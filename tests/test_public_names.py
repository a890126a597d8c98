from __future__ import annotations

import subprocess
import sys

import coinhaze


def test_public_names_are_sorted_and_exist() -> None:
    assert coinhaze.__all__ == sorted(coinhaze.__all__)
    for name in coinhaze.__all__:
        assert getattr(coinhaze, name).__doc__, name


def test_unknown_names_are_refused() -> None:
    try:
        coinhaze.nothing_of_the_kind  # noqa: B018
    except AttributeError as error:
        assert "nothing_of_the_kind" in str(error)
    else:
        raise AssertionError


def test_light_commands_import_neither_numba_nor_scipy() -> None:
    code = (
        "import sys; from coinhaze.cli import main, cli\n"
        "sys.argv = ['coinhaze', '--version']\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'scipy', 'pyarrow', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.house import classes_of, repeated, sources

import coinhaze


def test_public_names_are_sorted_and_exist() -> None:
    assert coinhaze.__all__ == sorted(coinhaze.__all__)
    for name in coinhaze.__all__:
        assert getattr(coinhaze, name).__doc__, name


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        getattr(coinhaze, "nothing_of_the_kind")  # noqa: B009


@pytest.mark.parametrize(("former", "new"), [("Parcels", "Lots"), ("parcels", "lots")])
def test_former_names_still_work_and_name_what_replaces_them(former: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"coinhaze\.{former} is now coinhaze\.{new}$"):
        assert getattr(coinhaze, former) is getattr(coinhaze, new)


def test_light_commands_import_neither_numba_nor_scipy() -> None:
    code = (
        "import sys; from coinhaze.cli import main, cli\n"
        "sys.argv = ['coinhaze', '--version']\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'scipy', 'pyarrow', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_no_two_public_classes_share_a_name() -> None:
    assert repeated(classes_of(sources())) == []

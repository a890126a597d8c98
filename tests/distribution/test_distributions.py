"""The wheel and the source distribution, installed where there is nothing else, and tried.

Every extra is installed by itself: what it is for works with it, and without it a message names it.
Packages come from wherever pip and uv are set up to find them, or from their caches.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from glob import glob
from pathlib import Path

import httpx2
import pytest
from benchmarks.served import serving

from distribution.bare import ROOT, UV, Bare, build, done
from docs.test_docs import blocks, strip_ends
from docs.test_shell_blocks import SMALLER, address, commands, folder
from formats.test_descriptors import ZPUB

__all__ = ["address", "folder"]  # fixtures of the tests of shell blocks: the files they name

pytestmark = pytest.mark.long
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel and a source distribution of this checkout."""
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def plain(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """An environment after a plain `pip install`."""
    return Bare.made(tmp_path_factory.mktemp("plain") / "env", built[0])


def test_building_twice_gives_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    again = build(tmp_path)
    for first, second in zip(built, again, strict=True):
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]
        assert digests[0] == digests[1], first.name


def test_the_wheel_holds_the_package_and_no_more(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    tracked = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == tracked
    assert "coinhaze/py.typed" in names


def test_the_source_distribution_passes_tests_of_its_own(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """Those that read files beside the package: documentation, vectors, mutants, benchmarks."""
    with tarfile.open(built[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    if (ROOT / ".git").exists():
        tracked = {*done("git", "ls-files").split("\n")} - {""}
        here = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
        assert {name for name in tracked if (ROOT / name).exists()} <= here
    names = (
        "tests/docs/test_architecture.py",
        "tests/docs/test_docs.py::test_links_between_pages_lead_somewhere",
        "tests/docs/test_glossary.py",
        "tests/golden/test_differences.py",
        "tests/test_mutants.py",
        "tests/test_units.py",
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-n", "0", "-m", "not long", *names],
        cwd=unpacked,
        env=os.environ | {"PYTHONPATH": str(unpacked / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert re.search(r"\b\d{2,} passed", result.stdout), result.stdout[-500:]
    # Its package is what was tested, and not that of this checkout.
    where = "import coinhaze; print(coinhaze.__file__)"
    environment = os.environ | {"PYTHONPATH": str(unpacked / "src")}
    shown = subprocess.check_output([sys.executable, "-c", where], env=environment, text=True)
    assert Path(shown.strip()).is_relative_to(unpacked)


def test_the_source_distribution_installs_and_scores(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    bare = Bare.made(tmp_path / "env", built[1])
    (tmp_path / "transfers.csv").write_text(blocks(ROOT / "README.md", "csv")[0])
    result = bare.run("score", "transfers.csv", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1.2408" in result.stdout


# For each extra, a command that needs it.
NEEDS = {
    "all": "growth transfers.csv --figure bits.png",
    "cluster": "score transfers.csv --workers 2",
    "figures": "growth transfers.csv --figure bits.png",
    "labels": "screen transfers.csv --listed tags.yaml",
    "nodes": "ingest bitcoin+http://NODE --from 800000 --to 800002 -o two.duckdb",
    "page": "serve transfers.csv",
}
TAGS = "title: a list\nlabel: listed\ntags:\n  - address: shop\n"


def test_every_extra_is_tried() -> None:
    assert {*NEEDS, "gpu", "keys"} == set(EXTRAS)


@pytest.mark.parametrize("extra", NEEDS)
def test_an_extra_brings_what_it_is_for(
    extra: str, built: tuple[Path, Path], plain: Bare, folder: Path, address: str
) -> None:
    (folder / "tags.yaml").write_text(TAGS)
    words = NEEDS[extra].replace("NODE", address).split()
    without = plain.run(*words, folder=folder)
    assert without.returncode == 2, without.stdout
    named = "figures" if extra == "all" else extra
    assert f"pip install 'coinhaze[{named}]'" in without.stderr
    bare = Bare.made(folder / "env", built[0], extra)
    if extra in ("page", "all"):
        serves(bare, "transfers.csv")
    if extra != "page":
        found = bare.run(*words, folder=folder)
        assert found.returncode == 0, found.stderr


def test_the_extra_of_keys_brings_points_of_the_curve(
    built: tuple[Path, Path], plain: Bare, tmp_path: Path
) -> None:
    code = f"from coinhaze.formats.descriptors import parse_keys; print(len(parse_keys({ZPUB!r})))"
    without = subprocess.run([plain.python, "-c", code], capture_output=True, text=True)
    assert without.returncode != 0
    assert "pip install 'coinhaze[keys]'" in without.stderr
    bare = Bare.made(tmp_path / "env", built[0], "keys")
    assert int(done(bare.python, "-c", code, folder=tmp_path)) >= 1


def serves(bare: Bare, ledger: str) -> None:
    """Serve a ledger from an environment; its page must answer."""
    with serving(ledger, python=bare.python) as server:
        answer = httpx2.get(server.address, headers=server.bearer, timeout=600)
        assert answer.status_code == 200


def test_packages_for_a_gpu_exist_and_fit_the_others(built: tuple[Path, Path], plain: Bare) -> None:
    """They are gigabytes, and need a GPU to be tried: found, and not fetched."""
    wanted = f"coinhaze[gpu] @ {built[0].as_uri()}"
    done(UV, "pip", "install", "-q", "--dry-run", "--python", plain.python, wanted)


# What the README says an extra is needed for.
OF_EXTRAS = r"^coinhaze (serve|ingest bitcoin\+http|compare|history table .*--figure)"


def test_commands_of_the_readme_run_after_a_plain_install(
    plain: Bare, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those that need an extra: they name it, and are run by this environment instead."""
    readme = ROOT / "README.md"
    tried = 0
    for line in commands(readme):
        words = _words(line, address)
        found = plain.run(*words, folder=folder)
        if re.search(OF_EXTRAS, line):
            assert found.returncode == 2, line
            assert "pip install 'coinhaze[" in found.stderr, line
            if words[0] == "ingest":  # what the commands after it read
                done(sys.executable, "-P", "-m", "coinhaze", *words, folder=folder)
        else:
            assert found.returncode == 0, f"{line}: {found.stderr}"
            tried += 1
    assert tried > 15
    monkeypatch.setenv("COLUMNS", "96")  # as tests/docs/test_docs.py shows it
    (console,) = (block for block in blocks(readme, "console") if "coinhaze score" in block)
    command, _, shown = console.removeprefix("$ coinhaze ").partition("\n")
    printed = plain.run(*command.split(), folder=folder).stdout
    assert strip_ends(printed) == strip_ends(shown)


def _words(line: str, node: str) -> list[str]:
    """Give the words of a command after its name, as a shell would, made small."""
    for large, small in SMALLER.items():
        line = line.replace(large, small.replace(" --no-figures", ""))
    line = line.replace("127.0.0.1:8332", node).replace(" --open", "")
    return [name for word in shlex.split(line)[1:] for name in sorted(glob(word)) or [word]]

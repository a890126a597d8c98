"""The script that fetches the test nodes: only what is pinned is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / ".ci"
PINS = {
    name: digest
    for digest, name in (line.split() for line in (CI / "nodes.sha256").read_text().splitlines())
}
PROGRAMS = [name for name in PINS if not name.endswith(".deb")]


def installed() -> Path:
    nodes = Path(os.environ.get("COINHAZE_NODES") or Path.home() / ".cache" / "coinhaze-nodes")
    if not (nodes / "npm").is_dir():
        pytest.skip(f"no nodes in {nodes}: .ci/install-nodes fetches them")
    return nodes


def install(nodes: Path, *options: str, programs: Path | None = None) -> tuple[int, str]:
    """Run the script on a folder; give its exit code and what it says."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}" if programs else os.environ["PATH"]
    done = subprocess.run(
        ["bash", str(CI / "install-nodes"), *options],
        env=os.environ | {"COINHAZE_NODES": str(nodes), "PATH": path},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stderr


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """A folder with the programs that are installed, which the test may change."""
    for name in PROGRAMS:
        place = tmp_path / "nodes" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(installed() / name)
    return tmp_path / "nodes"


def test_what_is_installed_is_what_is_pinned(nodes: Path) -> None:
    assert install(installed(), "--check") == (0, "")
    assert install(nodes, "--check") == (0, "")


@pytest.mark.parametrize("name", [PROGRAMS[0], PROGRAMS[-1]])
def test_a_program_that_was_changed_is_noticed(nodes: Path, name: str) -> None:
    program = nodes / name
    real = program.resolve()
    program.unlink()
    shutil.copyfile(real, program)
    with open(program, "r+b") as file:
        file.seek(real.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    code, said = install(nodes, "--check")
    assert code == 1
    assert f"{program} is not the one that is pinned" in said
    assert PINS[name] in said
    assert ".ci/nodes.sha256" in said
    assert ".ci/install-nodes --renew" in said


def test_a_changed_program_is_neither_run_nor_offered(nodes: Path) -> None:
    """Also where the script may install: it ends before it runs what it found."""
    program = nodes / "bitcoin-knots/usr/bin/bitcoind"
    program.unlink()
    program.write_text(f"#!/bin/sh\ntouch {nodes}/was-run\n")
    program.chmod(0o755)
    code, said = install(nodes)
    assert code == 1
    assert "is not the one that is pinned" in said
    assert not (nodes / "was-run").exists()
    assert not (nodes / "bin" / "bitcoind").exists()


def test_a_missing_program_is_named_by_a_check(nodes: Path) -> None:
    (nodes / "monero/usr/bin/monerod").unlink()
    code, said = install(nodes, "--check")
    assert code == 1
    assert "monero/usr/bin/monerod is not there" in said


def apt_that(does: str, folder: Path) -> Path:
    """Make a program that stands for apt-get and does this when it is to install something."""
    folder.mkdir()
    apt = folder / "apt-get"
    apt.write_text(
        f"""#!/usr/bin/env bash
        for word in "$@"; do
          case "$word" in
            Dir::Cache=*) cache="${{word#*=}}" ;;
            indextargets) echo http://127.0.0.1:9; exit 0 ;;
            update) exit 0 ;;
          esac
        done
        {does}
        """
    )
    apt.chmod(0o755)
    return folder


DEB = next(name for name in PINS if name.startswith("bitcoin-knots_"))


def test_a_version_that_is_no_longer_offered_is_named_with_what_to_do(tmp_path: Path) -> None:
    gone = "echo \"E: Version '${*: -1}' was not found\" >&2; exit 100"
    code, said = install(tmp_path / "nodes", programs=apt_that(gone, tmp_path / "programs"))
    version = DEB.removeprefix("bitcoin-knots_").removesuffix("_amd64.deb")
    assert code == 1
    assert f"Debian unstable gives no bitcoin-knots={version}." in said
    assert "was not found" in said
    assert ".ci/install-nodes --renew" in said
    assert ".ci/nodes.sha256" in said


def test_a_package_with_another_hash_is_not_unpacked(tmp_path: Path) -> None:
    other = f'echo other >"$cache/archives/{DEB}"'
    code, said = install(tmp_path / "nodes", programs=apt_that(other, tmp_path / "programs"))
    assert code == 1
    assert f"{DEB} is not the one that is pinned" in said
    assert PINS[DEB] in said
    assert not (tmp_path / "nodes" / "bitcoin-knots").exists()


def test_packages_of_npm_are_exact_and_hashed_and_name_no_host() -> None:
    wanted = json.loads((CI / "npm" / "package.json").read_text())["dependencies"]
    text = (CI / "npm" / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    del packages[""]
    assert {name.removeprefix("node_modules/"): p["version"] for name, p in packages.items()} == {
        name: version for name, version in wanted.items() if re.fullmatch(r"[\d.]+", version)
    }
    assert len(packages) == len(wanted)
    assert all(p["integrity"].startswith("sha512-") for p in packages.values())
    assert "://" not in text
    assert "resolved" not in text


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    code, said = install(tmp_path, "--force")
    assert code == 1
    assert "usage" in said

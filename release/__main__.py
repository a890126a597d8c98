"""Build a release, check it, and list what it is made of.

    python -m release [--tag v1.2.3] [--sign KEY] [--publish] [--output dist]

Without --publish nothing leaves the machine: that is the dry run. The version of the package, of
CITATION.cff, of the conda recipe and of the changelog must be one, and the tag, if given, its name.
Wheel and source distribution are built twice and must be the same bytes. Beside them are written
their digests (SHA256SUMS) and a bill of materials (CycloneDX), from the lock file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")


class NotReady(Exception):
    """Something that must be put right before a release."""


def build(folder: Path) -> list[Path]:
    """Build a wheel and a source distribution with the pinned tools."""
    command = [UV, "build", "-q", "--no-build-isolation", "--python", sys.executable, "-o", folder]
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True)
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def digest(path: Path) -> str:
    """Give the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def versions(root: Path = ROOT) -> dict[str, str]:
    """Give the version that each file states."""
    patterns = {
        "src/coinhaze/__init__.py": r'^__version__ = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "packaging/conda/meta.yaml": r'^  version: "(.+)"$',
        "README.md": r"\(version (.+?)\)",
    }
    found = {}
    for name, pattern in patterns.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def check_versions(tag: str | None, root: Path = ROOT) -> str:
    """Give the one version of all files; with a tag the changelog must have it as well."""
    found = versions(root)
    if len({*found.values()}) > 1:
        raise NotReady("versions differ: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    (version,) = {*found.values()}
    if tag is not None:
        if tag != f"v{version}":
            raise NotReady(f"the tag is {tag}, the version {version}: the tag must be v{version}")
        if f"## [{version}]" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
            raise NotReady(f"CHANGELOG.md has no section [{version}]")
    return version


def check_metadata(wheel: Path, version: str) -> None:
    """Check what an index would refuse, or show badly."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(name).decode())
        if archive.testzip() is not None:
            raise NotReady(f"{wheel.name} is damaged")
    wanted = {"Name": "coinhaze", "Version": version, "License-Expression": "MIT"}
    for field, value in wanted.items():
        if about[field] != value:
            raise NotReady(f"{wheel.name}: {field} is {about[field]}, not {value}")
    if about["Description-Content-Type"] != "text/markdown" or not about.get_payload():
        raise NotReady(f"{wheel.name} has no description")


def bill_of_materials(version: str, lock: str) -> dict[str, object]:
    """List every package of the lock file, with its digests, as CycloneDX does."""
    components = []
    for name, pinned, rest in re.findall(
        r"^([\w.-]+)==(\S+)(.*?)(?=^[\w.-]+==|\Z)", lock, re.MULTILINE | re.DOTALL
    ):
        components.append(
            {
                "type": "library",
                "name": name,
                "version": pinned,
                "purl": f"pkg:pypi/{name}@{pinned}",
                "properties": [
                    {"name": "coinhaze:sha256", "value": value}
                    for value in re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
                ],
            }
        )
    about = {"type": "application", "name": "coinhaze", "version": version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**about, "licenses": [{"license": {"id": "MIT"}}]}},
        "components": components,
    }


def prepare(folder: Path, tag: str | None) -> list[Path]:
    """Build and check a release in an empty folder; give the distributions."""
    if folder.exists() and any(path.name != ".gitignore" for path in folder.iterdir()):
        raise NotReady(f"{folder} is not empty: remove what is in it")
    version = check_versions(tag)
    files = build(folder)
    with tempfile.TemporaryDirectory() as again:
        for first, second in zip(files, build(Path(again)), strict=True):
            if digest(first) != digest(second):
                raise NotReady(f"{first.name} is not the same when it is built again")
    for path in files:
        if path.suffix == ".whl":
            check_metadata(path, version)
    lines = [f"{digest(path)}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    lock = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    bill = json.dumps(bill_of_materials(version, lock), indent=1)
    (folder / f"coinhaze-{version}.cdx.json").write_text(bill + "\n", encoding="utf-8")
    print("".join(lines), end="")
    print(
        f"version {version}; built twice with the same bytes; {bill.count('purl')} packages listed"
    )
    return files


def main(arguments: list[str] | None = None) -> int:
    """Prepare a release; sign and publish it only where that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m release")
    parser.add_argument("--tag", help="the tag that is released, v and the version")
    parser.add_argument("--sign", metavar="KEY", help="sign SHA256SUMS by gpg with this key")
    parser.add_argument("--publish", action="store_true", help="upload, to uv's default index")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    given = parser.parse_args(arguments)
    try:
        if given.publish and given.tag is None:
            raise NotReady("--publish needs --tag")
        files = prepare(given.output, given.tag)
    except NotReady as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    if given.sign:
        signed = str(given.output / "SHA256SUMS")
        subprocess.run(["gpg", "--local-user", given.sign, "--detach-sign", signed], check=True)
    if not given.publish:
        print("dry run: nothing was uploaded")
        return 0
    subprocess.run([str(UV), "publish", *map(str, files)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

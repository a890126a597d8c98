"""The release script, the files around it, and the words in all of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from release import __main__ as release

from distribution.bare import ROOT


def test_a_dry_run_builds_checks_and_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("dry run: nothing was uploaded\n")
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    listed = {name: value for value, name in map(str.split, lines)}
    assert len(listed) == 2
    assert all(release.digest(tmp_path / name) == value for name, value in listed.items())
    (bill,) = tmp_path.glob("*.cdx.json")
    components = json.loads(bill.read_text())["components"]
    names = {one["name"] for one in components}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]} <= names  # type: ignore[index]
    assert all(one["properties"] for one in components)
    assert release.main(["--output", str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_versions_must_agree_and_the_tag_be_theirs(tmp_path: Path) -> None:
    for name in (*release.versions(), "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = release.check_versions(None, tmp_path)
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    with pytest.raises(release.NotReady, match=f"the tag must be v{version}"):
        release.check_versions("v99.0.0", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    with pytest.raises(release.NotReady, match="CHANGELOG"):
        release.check_versions(f"v{version}", tmp_path)
    citation = tmp_path / "CITATION.cff"
    citation.write_text(re.sub(r"(?m)^version: .*", "version: 99.0.0", citation.read_text()))
    with pytest.raises(release.NotReady, match=r"CITATION\.cff 99"):
        release.check_versions(None, tmp_path)


def test_nothing_is_published_without_a_tag(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["--publish"]) == 1
    assert "--publish needs --tag" in capsys.readouterr().err


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    found = {tuple(line.strip("- ").split()) for line in run.splitlines()}
    other = {"duckdb": "python-duckdb", "msgspec": "msgspec-python"}  # what conda calls them
    wanted = {("python", ">=3.11")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for one in project["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", one).groups()  # type: ignore[union-attr]
        wanted.add((other.get(name, name), bound))
    assert found == wanted


def test_the_workflow_tries_the_python_versions_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    tried = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/check.yml").read_text())
    assert tried is not None
    assert re.findall(r"[\d.]+", tried[1]) == promised
    assert project["requires-python"] == f">={promised[0]}"


def test_citations_of_the_paper_are_in_its_bibliography() -> None:
    cited = {*re.findall(r"@(\w+)", (ROOT / "paper/paper.md").read_text())}
    listed = {*re.findall(r"@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text())}
    assert cited == listed


def test_the_pinned_real_ledgers_are_those_that_are_described(tmp_path: Path) -> None:
    pins = ROOT / ".ci/real-ledgers.sha256"
    sets = {line.split()[1].split("/")[0] for line in pins.read_text().splitlines()}
    page = (ROOT / "docs/real-ledgers.md").read_text()
    assert sets == {*re.findall(r"^\| (\w+) \|", page, re.MULTILINE)} - {"set"}
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one").write_bytes(b"1")
    (tmp_path / "pins").write_text(
        f"{release.digest(tmp_path / 'a/one')}  a/one\n{'0' * 64}  b/x\n"
    )
    script = [sys.executable, str(ROOT / ".ci/real_ledgers.py"), str(tmp_path)]
    done = subprocess.run([*script, str(tmp_path / "pins")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "a: complete\nb: b/x is missing\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x").write_bytes(b"2")
    done = subprocess.run([*script, str(tmp_path / "pins")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (
        1,
        "a: complete\nb: b/x is not the file that is pinned\n",
    )


def test_words_are_spelled_as_they_should_be() -> None:
    """Common misspellings, in what users read and in the code."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "codespell_lib",
            "-L",
            "nd",
            "--skip",
            "*.png,*.svg,*.bib,_build,*.pyc",
        ]
        + [str(p) for p in (*ROOT.glob("*.md"), *ROOT.glob("docs"), ROOT / "src", ROOT / "paper")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout

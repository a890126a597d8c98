"""The architecture page shows the packages, and the order of imports, as they are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from docs.test_docs import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
PACKAGE = ROOT / "src/coinhaze"


def test_every_package_is_in_the_tree_and_every_entry_exists() -> None:
    tree = blocks(PAGE, "text")[0]
    shown, above = set(), ""
    for indent, name, words in re.findall(r"^( +)(\w+/?) +(\S.*)$", tree, re.MULTILINE):
        assert words
        if len(indent) == 2:
            above = name
        path = name if len(indent) == 2 else above + name
        assert (
            (PACKAGE / path).is_dir() if path.endswith("/") else (PACKAGE / f"{path}.py").exists()
        )
        shown.add(path.rstrip("/"))
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    for above in ("history", "solve"):
        inner = PACKAGE.glob(f"{above}/*/__init__.py")
        packages |= {f"{above}/{path.parent.name}" for path in inner}
    modules = {p.stem for p in PACKAGE.glob("*.py") if not re.search("^__|_kernels$", p.stem)}
    assert shown == packages | modules


def test_the_order_of_imports_is_the_one_that_is_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [layer.replace("coinhaze.", "") for layer in settings["contracts"][0]["layers"]]
    assert blocks(PAGE, "text")[1].splitlines() == layers


def test_a_row_goes_through_modules_that_exist() -> None:
    """Modules named on a page are imported by test_docs; here, that no stage is left out."""
    stages = re.findall(
        r"^\d+\. \*\*(\w+)\.\*\* (.*?)(?=^\d+\. |^## |\Z)", PAGE.read_text(), re.M | re.S
    )
    names = "Reader Batch Store Ledger Flows Graph Chain Structure Engine Scores Explore Page"
    assert [name for name, _ in stages] == names.split()
    assert all("`coinhaze." in text for _, text in stages)

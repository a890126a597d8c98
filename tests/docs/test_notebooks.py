"""The notebooks run from top to bottom, show what they should, and say errors in a few lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
# Words that only a right answer has, in HTML, text or an error.
WORDS = {
    "researcher": [
        "total moved", "DAI", "AbsorbingChain", r"\\toprule", r"\$\|V\|\$", r"as published",
        r"46,000", "balance_shown", "UsageError: policy cannot be set",
    ],
    "holder": ["unspent value", r"\d BTC", "It holds", "bits, likeliest", "UnknownCoin: no coin"],
    "analyst": [
        "haircut: 20.0%", "lifo: 0.0%", "thief -> shop -> friend -> deposit", "smallest unit",
        "no node 'depsit'.*deposit",
    ],
}  # fmt: skip
LARGEST = 50_000  # bytes of HTML


def executed(name: str, folder: Path) -> list[Any]:
    notebook = _read(name)
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(WORDS))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    outputs = executed(name, tmp_path)
    shown = "\n".join(map(_text, outputs))
    for words in WORDS[name]:
        assert re.search(words, shown), (words, shown)
    for output in outputs:
        html = output.get("data", {}).get("text/html", "")
        assert len(html) < LARGEST
        assert "<script" not in html
        if output.output_type == "error":
            assert len(output.traceback) <= 2, output.traceback
    assert any(output.output_type == "error" for output in outputs)


def test_every_notebook_is_run_and_stored_without_outputs() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == WORDS.keys()
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = _read(path.stem).cells
        assert not any(cell.get("outputs") for cell in cells), path.name
        page = (NOTEBOOKS.parent / "notebooks.md").read_text()
        assert f"notebooks/{path.name}" in page


def _read(name: str) -> Any:
    return nbformat.reads((NOTEBOOKS / f"{name}.ipynb").read_text(), as_version=4)  # type: ignore[no-untyped-call]


def _text(output: Any) -> str:
    if output.output_type == "error":
        return "\n".join(output.traceback)
    if output.output_type == "stream":
        return str(output.text)
    data = output.data
    return "\n".join(str(data.get(kind, "")) for kind in ("text/html", "text/plain"))

"""The emulation of Wasabi 2, whose owners are known: the figures in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from benchmarks.wasabi_truth import main

PAGE = Path(__file__).parents[2] / "docs" / "comparators.md"


def test_the_table_in_the_documentation_is_what_the_emulation_gives(data: Path) -> None:
    archive = next((data / "btc_wasabi2_emulation_truth").glob("*.tar.xz"))
    guesses = main(archive)
    shown = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert guesses.lines() == shown[0].rstrip().splitlines()
    # Counted by value, what bits claim is what the truth bears out; counted by coin it is not.
    surprise = -np.log2(guesses.given_truth)
    bits = guesses.measures["bits over wallets"]
    weighted = np.average(surprise - bits, weights=guesses.value)
    assert abs(weighted) < 0.1
    assert np.mean(surprise - bits) > 0.5

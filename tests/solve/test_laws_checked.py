"""A solve that breaks a law gives no scores: rows of B sum to 1, and x^T B is the openings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import AccuracyError
from coinhaze.ledger import AccountLedger
from coinhaze.solve import exact
from coinhaze.solve.certify import check_mass
from coinhaze.solve.sums import Sums

LEDGER = AccountLedger.from_transfers([("a", "m", 4), ("b", "m", 4), ("m", "c", 6)])
Spoil = Callable[[Sums, Any], Any]


def spoilt(monkeypatch: pytest.MonkeyPatch, spoil: Spoil) -> None:
    """Let every exact solve give sums and weights that `spoil` has changed."""
    for name in ("list_sums", "stream_sums"):
        solve = getattr(exact, name)

        def wrong(*given: Any, solve: Any = solve, **more: Any) -> Any:
            sums, weights, *rest = solve(*given, **more)
            return sums, spoil(sums, weights), *rest

        monkeypatch.setattr(exact, name, wrong)


def lose(share: float) -> Spoil:
    def spoil(sums: Sums, weights: Any) -> Any:
        sums.mass[:] *= 1 - share
        return weights

    return spoil


def grow(factor: float) -> Spoil:
    def spoil(_: Sums, weights: Any) -> Any:
        return weights * np.array([factor, 1.0])

    return spoil


def test_a_solve_that_loses_or_makes_mass_gives_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    for share in (1e-6, -1e-6):
        with monkeypatch.context() as patch:
            spoilt(patch, lose(share))
            with pytest.raises(AccuracyError, match=r"a row of B sums to 1 .* mass was lost") as no:
                coinhaze.score(LEDGER)
            assert getattr(no.value, "scores", None) is None
    coinhaze.score(LEDGER)


def test_a_solve_that_gives_a_source_too_much_gives_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for factor in (1 + 1e-6, 1 - 1e-6):
        with monkeypatch.context() as patch:
            spoilt(patch, grow(factor))
            with pytest.raises(AccuracyError, match=r"x\^T B differs from b by 1.00e-06"):
                coinhaze.score(LEDGER, nodes="all")
    assert (coinhaze.score(LEDGER, nodes="all").conservation or 0.0) < 1e-15


@pytest.mark.parametrize("mass", [1 - 2e-9, 1 + 2e-9, np.nan])
def test_one_row_without_its_mass_is_enough(mass: float) -> None:
    check_mass(np.array([1.0, 1 + 1e-12]))
    with pytest.raises(AccuracyError, match="mass was lost"):
        check_mass(np.array([1.0, mass, 1.0]))

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from store.made_stores import Chain

Run = Callable[..., tuple[int, str, str]]


def test_completeness_and_what_pools_held_can_be_reported(run: Run, tmp_path: Path) -> None:
    chain = Chain(first=7)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.pay("b", [("x", 0, 9)], [("ann", 9)])
    chain.pay("c", [], [("ann", 20)], sapling=-20)
    with chain.store(tmp_path / "store"):
        pass
    code, out, err = run("verify", "store", "--pool", "sapling=100")
    assert (code, err) == (0, "")
    assert "pool sapling: 0 in, 20 out, -20, so 80 from 100" in out
    code, _, err = run("verify", "store", "--pool", "sapling=19")
    assert (code, err.count("\n")) == (3, 1)
    assert "holds less than nothing" in err
    code, _, err = run("verify", "store", "--pool", "sapling")
    assert code == 2
    assert "sapling=0.5 ZEC" in err
    code, _, err = run("verify", "store", "--complete")
    assert code == 3
    assert "an unknown coin in a complete ledger" in err

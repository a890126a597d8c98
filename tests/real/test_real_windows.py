"""A window of real ether opens with what lies before it, as a slow replay has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import InputError
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.ingest import ingest
from coinhaze.store.read import opening_of
from coinhaze.store.store import Store

CUT = 490_000
ZERO = "0x" + "0" * 40
Moves = list[tuple[int, str, str, int]]  # height, sender, recipient, amount


def moves_of(store: Store) -> Moves:
    rows = store.ask(
        "SELECT height, sender, recipient, CAST(amount AS VARCHAR) FROM transfers "
        "ORDER BY height, position, step"
    )
    return [(height, sender, recipient, int(amount)) for height, sender, recipient, amount in rows]


def replay(moves: Iterable[tuple[int, str, str, int]]) -> tuple[dict[str, int], dict[str, int]]:
    """Give every account's balance at the end, and the lowest it ever had."""
    held: dict[str, int] = defaultdict(int)
    lowest: dict[str, int] = defaultdict(int)
    for _, sender, recipient, amount in moves:
        held[sender] -= amount
        held[recipient] += amount
        lowest[sender] = min(lowest[sender], held[sender])
    for balances in (held, lowest):
        balances.pop(ZERO, None)
    return held, lowest


@pytest.fixture
def ether(data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "ether"
    with Store(path) as store:
        ingest([data / "eth_480000_499999" / "transactions.parquet"], store)
    return path


def test_accounts_in_debt_before_the_window_are_counted_and_named(ether: Path) -> None:
    with Store(ether, read_only=True) as store:
        held, _ = replay(m for m in moves_of(store) if m[0] < CUT)
    debtors = sorted(account for account, balance in held.items() if balance < 0)
    assert len(debtors) > 100
    with pytest.raises(InputError, match=f"{len(debtors)} accounts paid more .*{debtors[0]}"):
        coinhaze.score(ether, first=CUT)
    # A table of one's own, or the least that explains what was spent, is the way out.
    assert coinhaze.score(ether, first=CUT, opening="surplus").summary().scored > 500


def test_a_window_opens_with_what_a_slow_replay_finds(ether: Path) -> None:
    """Money from before the set is added, as a genesis allocation, so that nobody is in debt."""
    with Store(ether) as store:
        moves = moves_of(store)
        _, lowest = replay(moves)
        genesis = Rows("transfers")
        for step, account in enumerate(sorted(a for a, low in lowest.items() if low < 0)):
            amount = str(-lowest[account])
            genesis.add(
                height=0, position=0, step=step, txid="genesis", token="", sender=ZERO,
                recipient=account, amount=amount, kind="genesis",
            )  # fmt: skip
        with store.transaction():
            store.append(Batch(gather([genesis])))
        held, _ = replay(m for m in moves_of(store) if m[0] < CUT)
    expected = {account: balance for account, balance in held.items() if balance > 0}
    assert min(held.values()) == 0
    assert opening_of(ether, LedgerWindow.of(CUT, None)) == expected
    found = coinhaze.score(ether, first=CUT)
    ledger = coinhaze.AccountLedger.from_transfers([m[1:] for m in moves if m[0] >= CUT])
    plain = coinhaze.score(ledger, opening=expected)
    bits = dict(zip(plain.to_arrow()["node"].to_pylist(), plain.bits, strict=True))
    names = found.to_arrow()["node"].to_pylist()
    burns = [name for name in names if name.startswith("burn:")]
    assert set(names) - set(burns) == {name for name in bits if not name.startswith("burn:")}
    for name, value in zip(names, found.bits, strict=True):
        if name in bits:
            assert value == pytest.approx(bits[name], abs=1e-9)
    assert found.conservation is not None
    assert found.conservation < 1e-9
    assert np.nanmax(found.bits) > 1
    # Without what lies before, the same window has other, smaller openings: other bits.
    surplus = coinhaze.score(ether, first=CUT, opening="surplus")
    assert surplus.summary().bits_mean != pytest.approx(found.summary().bits_mean, abs=1e-3)

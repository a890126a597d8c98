"""Transfers out of a store: in order, of one token, with what accounts held before a window."""

from __future__ import annotations

import pytest

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.read import opening_balances, read_store
from coinhaze.store.store import Store
from store.made_stores import stored, transfers

ZERO = "0x" + "0" * 40


def store_of(*rows: tuple[int, int, str, str]) -> Store:
    """One block of transfers of 5 (position, step, sender, token)."""
    table = Rows("transfers")
    for position, step, sender, token in rows:
        table.add(
            height=1, position=position, step=step, txid=f"t{position}", token=token,
            sender=sender, recipient="z", amount="5", kind="token",
        )  # fmt: skip
    return stored(gather([table]))


def test_transfers_of_a_block_come_by_transaction_and_then_by_step() -> None:
    with store_of((1, 0, "c", "x"), (0, 7, "b", "x"), (0, 6, "a", "x")) as store:
        ledger = read_store(store)
    assert isinstance(ledger, AccountLedger)
    assert [ledger.accounts[k].as_py() for k in ledger.sender.tolist()] == ["a", "b", "c"]


def test_of_several_tokens_one_must_be_named() -> None:
    with store_of((0, 0, "a", "x"), (0, 1, "b", "y")) as store:
        with pytest.raises(UsageError, match="2 tokens"):
            read_store(store)
        assert len(read_store(store, token="Y")) == 1
        with pytest.raises(UsageError, match="no token 'z'"):
            read_store(store, token="z")


def test_balances_before_a_window_are_those_of_the_blocks_before_it() -> None:
    with transfers([(ZERO, "a", 9), ("a", "b", 4), ("b", "a", 1)]) as store:
        assert opening_balances(store, LedgerWindow("height", 0, None)) is None
        assert opening_balances(store, LedgerWindow("height", 1, None)) == {"a": 9}
        assert opening_balances(store, LedgerWindow("height", 2, None)) == {"a": 5, "b": 4}


def test_a_balance_below_zero_before_a_window_is_refused() -> None:
    with (
        transfers([("a", "b", 4), ("b", "a", 1)]) as store,
        pytest.raises(InputError, match="1 accounts paid more than they had received before"),
    ):
        opening_balances(store, LedgerWindow("height", 1, None))


def test_a_store_holds_coins_or_accounts() -> None:
    coins = Rows("transactions")
    coins.add(height=1, txid="m", coinbase=True)
    with transfers([("a", "b", 4)]) as store:
        with pytest.raises(UsageError, match="holds accounts; a store is one ledger"):
            store.append(Batch(gather([coins])))
        assert store.kind == "accounts"

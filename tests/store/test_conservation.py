"""Conservation of money: what holds is said with its figures, what does not is named."""

from __future__ import annotations

import re

import pytest

from coinhaze.errors import LedgerError, UsageError
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.batches import Rows, gather
from coinhaze.store import verify as module
from coinhaze.store.store import Store
from coinhaze.store.verify import verify
from store.made_stores import Chain, stored, transfers

ZERO = "0x" + "0" * 40
MAXIMUM = 2**256 - 1


def honest(*, first: int = 0) -> Chain:
    """Two coinbases of 50; one pays 30 and 19, a fee of 1; the other shields 40 and keeps 10."""
    chain = Chain(first=first)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.block()
    chain.pay("b", made=[("bob", 50)])
    chain.pay("c", [("a", 0, 50)], [("cat", 30), ("dan", 19)])
    chain.block()
    chain.pay("d", made=[("eve", 51)])
    chain.pay("e", [("b", 0, None)], [("bob", 10)], sapling=40)
    chain.block()
    chain.pay("f", made=[("eve", 53)])
    chain.pay("g", [], [("fay", 25)], sapling=-28)
    return chain


def verified(store: Store, **given: object) -> str:
    with store:
        return "\n".join(verify(store, **given))  # type: ignore[arg-type]


def fault(store: Store, **given: object) -> str:
    with store, pytest.raises(LedgerError) as caught:
        verify(store, **given)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("heights", "mined", "whole"),
    [([0, 1, 2], 3, True), ([0, 1, 3], 3, False), ([1, 2, 3], 3, False), ([0, 1, 2], 2, False)],
    ids=["whole", "gap", "later", "no coinbase"],
)
def test_a_store_begins_with_its_chain_if_no_block_and_no_coinbase_is_missing(
    heights: list[int], mined: int, whole: bool
) -> None:
    chain = Chain()
    for number, height in enumerate(heights):
        chain.height = height - 1
        chain.block()
        if number < mined:
            chain.pay(f"m{height}", made=[("ann", 50)])
    with chain.store() as store:
        assert module.begins_with_chain(store) is whole


def test_rows_that_no_source_could_add_are_named() -> None:
    store = honest().store()
    store.ask("INSERT INTO outputs SELECT * FROM outputs WHERE txid = 'a'")
    assert "outputs: a key that is there twice: '0 a 0'" in fault(store)
    chain = honest()
    chain.rows["outputs"].add(height=1, txid="a", vout=1, spendable=True, value=0)
    assert "outputs: a row of a transaction that is not there: '1 a'" in fault(chain.store())


class TestCoins:
    def test_an_honest_store_says_what_it_adds_up_to(self) -> None:
        said = verified(honest().store())
        assert "balance: 3 transactions pay out no more than they take in; fees 4" in said
        values = "values: coinbases 204 + earlier coins 0 = unspent 188 + fees 4 + pools 12"
        assert values in said
        assert "pool sapling: 40 in, 28 out, +12" in said
        assert "blocks linked by previous hash: passed: 3 links" in said

    def test_a_transaction_that_makes_money_is_named(self) -> None:
        chain = honest()
        chain.pay("h", [("c", 0, None)], [("cat", 31)])
        assert re.search(r"outputs above inputs: 'h 31 out 30 in'", fault(chain.store()))

    def test_money_out_of_a_pool_counts_as_taken_in(self) -> None:
        chain = honest()
        chain.pay("h", [], [("cat", 6)], sapling=-5)
        assert "outputs above inputs: 'h 6 out 5 in'" in fault(chain.store())

    def test_a_coin_worth_another_amount_where_it_is_spent_is_named(self) -> None:
        chain = honest()
        chain.pay("h", [("c", 0, 29)], [("cat", 29)])
        assert "a coin with two values, where spent and where made: 'h c:0 29 30'" in fault(
            chain.store()
        )

    def test_a_coin_spent_twice_is_named(self) -> None:
        chain = honest()
        chain.pay("h", [("a", 0, 50)], [("cat", 50)])
        assert "a coin spent twice: 'a:0 c h'" in fault(chain.store())

    def test_sums_find_what_no_single_transaction_shows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chain = honest()
        chain.pay("h", [("a", 0, 50)], [("cat", 50)])
        monkeypatch.setattr(module, "_check_spent_once", lambda store: None)
        assert "values do not add up" in fault(chain.store())

    def test_an_unknown_coin_is_an_error_where_the_chain_begins_with_the_store(self) -> None:
        for first, given, refused in (
            (0, None, True),
            (0, False, False),
            (7, None, False),
            (7, True, True),
        ):
            chain = honest(first=first)
            chain.pay("h", [("x", 3, 9)], [("cat", 9)])
            if refused:
                what = "an unknown coin in a complete ledger: 'h x:3'"
                assert what in fault(chain.store(), complete=given)
            else:
                assert "earlier coins 9" in verified(chain.store(), complete=given)

    def test_coins_of_unknown_value_are_counted_not_guessed(self) -> None:
        chain = honest(first=7)
        chain.pay("h", [("x", 3, None)], [("cat", 9)])
        said = verified(chain.store())
        assert "balance: 1 transactions not checked" in said
        assert "ledger: values of 1 coins spent are unknown" in said
        assert "values:" not in said

    def test_blocks_that_are_missing_are_counted_and_torn_ones_named(self) -> None:
        chain = honest()
        chain.height += 5
        chain.block()
        assert "heights contiguous: failed 6 times, first at height 4" in verified(chain.store())
        chain = honest()
        chain.rows["blocks"].columns["previous"][2] = "elsewhere"
        said = verified(chain.store())
        assert "blocks linked by previous hash: failed 1 time, first at height 2" in said


class TestPools:
    def test_a_pool_never_pays_what_it_does_not_hold_if_it_began_empty(self) -> None:
        chain = honest()
        chain.block()
        chain.pay("h", made=[("eve", 50)])
        chain.pay("i", [], [("fay", 13)], sapling=-13)
        what = "pool sapling: holds less than nothing: '-1 after block 4'"
        assert what in fault(chain.store())
        assert "it held at least 1 before" in verified(chain.store(), complete=False)

    def test_within_a_block_the_order_is_not_known_so_only_its_end_counts(self) -> None:
        chain = honest()
        chain.block()
        chain.pay("h", made=[("eve", 50)])
        chain.pay("i", [], [("fay", 13)], sapling=-13)
        chain.pay("j", [("e", 0, None)], [("fay", 9)], sapling=1)
        assert "pool sapling: 41 in, 41 out, +0" in verified(chain.store())

    def test_a_value_that_is_given_is_where_a_pool_begins(self) -> None:
        chain = honest(first=7)
        chain.block()
        chain.pay("h", made=[("eve", 50)])
        chain.pay("i", [], [("fay", 100)], sapling=-100)
        said = verified(chain.store(), pool_values={"sapling": 88})
        assert "pool sapling: 40 in, 128 out, -88, so 0 from 88" in said
        assert "'-1 after block 11'" in fault(chain.store(), pool_values={"sapling": 87})
        assert "unknown pool" in fault(chain.store(), pool_values={"puddle": 87})


class TestTokens:
    def test_mints_less_burns_is_what_accounts_hold_to_the_last_unit(self) -> None:
        rows = [(ZERO, "ann", MAXIMUM), (ZERO, "bob", MAXIMUM), ("ann", "bob", MAXIMUM - 1)]
        rows += [("bob", ZERO, MAXIMUM - 2), ("ann", "ann", 5)]
        said = verified(transfers(rows), complete=True)
        assert f"mints {2 * MAXIMUM:,} - burns {MAXIMUM - 2:,} = balances {MAXIMUM + 2:,}" in said
        assert "no account pays more than it has" in said

    def test_a_transfer_the_ledger_loses_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = [(ZERO, "ann", 10), ("ann", "bob", 3), ("bob", ZERO, 2)]

        def lossy(store: Store, *, token: str) -> AccountLedger:
            return AccountLedger.from_transfers(rows[:2])

        monkeypatch.setattr(module, "read_store", lossy)
        what = "mints less burns is not what accounts hold: '10 - 2, but 10'"
        assert what in fault(transfers(rows))

    def test_who_pays_more_than_it_took_in_is_counted_and_named(self) -> None:
        rows = [(ZERO, "ann", 10), ("ann", "bob", 14), ("eve", "bob", 3), ("bob", "ann", 17)]
        said = verified(transfers(rows))
        assert "2 accounts pay more than they took in here: ann -4, eve -3" in said
        what = "2 accounts pay more than they have in a complete ledger: 'ann -4, eve -3'"
        assert what in fault(transfers(rows), complete=True)

    def test_the_order_counts_not_the_sum(self) -> None:
        rows = [("ann", "bob", 5), (ZERO, "ann", 5)]
        assert "1 accounts pay more than they took in here: ann -5" in verified(transfers(rows))

    def test_of_many_tokens_all_are_checked_and_the_busiest_shown(self) -> None:
        table = Rows("transfers")
        for number in range(8):
            for step in range(number + 1):
                table.add(
                    height=number, position=0, step=step, txid="t", token=f"token-{number}",
                    sender=ZERO, recipient="ann", amount="5", kind="token",
                )  # fmt: skip
        said = verified(stored(gather([table])))
        assert said.count("no account pays more") == 5
        assert "token token-7: mints 40 - burns 0 = balances 40" in said
        assert "3 more tokens: in each, mints - burns = balances" in said
        table.add(
            height=9, position=0, step=0, txid="u", token="token-0", sender="bob",
            recipient="ann", amount="5", kind="token",
        )  # fmt: skip
        assert "token token-0: 1 accounts pay more" in fault(stored(gather([table])), complete=True)

    def test_pools_of_accounts_are_refused(self) -> None:
        with transfers([("a", "b", 1)]) as store, pytest.raises(UsageError, match="no pools"):
            verify(store, pool_values={"sapling": 1})

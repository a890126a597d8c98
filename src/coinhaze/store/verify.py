"""A store checked from the ground up: keys, chain of blocks, references, conservation of money.

What the transactions, pools and tokens of a store must add up to holds to a unit. Each check gives
the figures it found, or raises the error that names what breaks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.formats.money import unit_of
from coinhaze.ledger.accounts import ZERO_ADDRESSES, AccountLedger
from coinhaze.ledger.batches import KEYS
from coinhaze.ledger.checks import check_pool_values
from coinhaze.ledger.coins import DUPLICATE_COINBASES, POOLS
from coinhaze.ledger.completeness import Completeness
from coinhaze.store.checks import account_completeness, coin_completeness
from coinhaze.store.read import read_store, refuse_orphans, unit_of_coins
from coinhaze.store.store import Store
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit

SHOWN = 3  # rows that break a rule
SHOWN_TOKENS = 5  # those with most transfers
_ZERO = ", ".join(f"'{name}'" for name in ZERO_ADDRESSES)


class Verified(list[str]):
    """What holds in a store, one line each; `completeness` says whether anything is missing."""

    completeness = Completeness()


def verify(
    store: Store,
    *,
    complete: bool | None = None,
    pool_values: Mapping[str, int] | None = None,
    unit: str | None = None,
) -> Verified:
    """Raise the error that names the first rule broken; else say what holds, with its figures.

    What is missing breaks no rule: the checks that failed are in `completeness` of the result.

    `complete` says whether the store begins with its chain; of coins that is seen by its blocks.
    `pool_values` is what pools held before the store begins. Amounts are said in `unit`, as
    `read` takes it, or else in what the store shows its money to be.
    """
    said = Verified()
    for name in store.tables:
        _check_keys(store, name)
        ((rows,),) = store.ask(f"SELECT count(*) FROM {name}")
        if rows:
            said.append(f"{name}: {rows:,} rows, no key twice")
    if store.kind is not None:
        check = coin_completeness if store.kind == "coins" else account_completeness
        said.completeness = check(store)
        said += [check.words() for check in said.completeness.checks]
    refuse_orphans(store)
    said += _check_money(store, complete, pool_values or {}, unit)
    said.append(f"digest {store.digest()}")
    return said


def _check_keys(store: Store, name: str) -> None:
    keys = ", ".join(KEYS[name])
    twice = store.ask(f"SELECT {keys} FROM {name} GROUP BY {keys} HAVING count(*) > 1 LIMIT 4")
    _refuse(store, name, "a key that is there twice", twice)


def _check_money(
    store: Store, complete: bool | None, pool_values: Mapping[str, int], unit: str | None
) -> list[str]:
    """Build the whole ledger, which checks all that must hold between rows, and add it up."""
    if store.kind is None:
        return ["the store is empty"]
    if store.kind == "coins":
        whole = begins_with_chain(store) if complete is None else complete
        said_in = unit_of_coins(store, unit=unit)
        said = check_coins(store, complete=whole, pool_values=pool_values, unit=said_in)
        said += [NOT_KNOWN] if not said_in.is_known and not store.hides_values else []
        return said + _check_coin_ledger(store)
    if pool_values:
        raise UsageError("accounts have no pools: leave their values out")
    return _check_tokens(store, unit, complete=bool(complete))


def _check_tokens(store: Store, unit: str | None, *, complete: bool) -> list[str]:
    said = []
    tokens = store.ask("SELECT token FROM transfers GROUP BY token ORDER BY count(*) DESC, token")
    for number, (token,) in enumerate(tokens):
        ledger = read_store(store, token=token)
        assert isinstance(ledger, AccountLedger)
        said_in = unit_of(ledger, unit=unit)
        found = check_token(store, ledger, token, complete=complete, unit=said_in)
        found += [NOT_KNOWN] if not said_in.is_known else []
        if number < SHOWN_TOKENS:
            said.append(f"ledger {token or 'of the chain itself'}: {len(ledger):,} transfers")
            said += found
    if len(tokens) > SHOWN_TOKENS:
        more = len(tokens) - SHOWN_TOKENS
        said.append(f"{more:,} more tokens: in each, mints - burns = balances")
    return said


def _check_coin_ledger(store: Store) -> list[str]:
    unknown = unknown_coins(store)
    if unknown:
        # Nothing is wrong with such a store, but not all of it can be scored.
        return [f"ledger: values of {unknown:,} coins spent are unknown: see score --unknown"]
    ledger = read_store(store)
    return [f"ledger: {len(ledger):,} transactions, no value from nothing, no coin spent twice"]


def begins_with_chain(store: Store) -> bool:
    """Tell whether a store has every block of its chain from the first on, with its coinbase."""
    ((first, last, count),) = store.ask("SELECT min(height), max(height), count(*) FROM blocks")
    ((filled,),) = store.ask("SELECT count(DISTINCT height) FROM transactions WHERE coinbase")
    return bool(count > 0 and first == 0 and last == count - 1 and filled == count)


def unknown_coins(store: Store) -> int:
    """Count coins spent whose value neither the spending nor another row gives."""
    if store.hides_values:
        return 0
    ((count,),) = store.ask(
        "SELECT count(*) FROM inputs ANTI JOIN (SELECT * FROM outputs WHERE value IS NOT NULL) AS "
        "made ON made.txid = spent_txid AND made.vout = spent_vout WHERE inputs.value IS NULL"
    )
    return int(count)


def check_coins(
    store: Store,
    *,
    complete: bool = False,
    pool_values: Mapping[str, int] | None = None,
    unit: Unit = SMALLEST,
) -> list[str]:
    """Check the balance of every transaction, the sum of all values, and every pool.

    `complete` says that the store begins with its chain: then every coin spent was made in it, and
    no pool ever holds less than nothing. `pool_values` is what pools held before.
    """
    if store.hides_values:
        return ["values are hidden: nothing can be added up"]
    _look_up_spent(store)
    _check_stated_values(store)
    _check_spent_once(store)
    if complete:
        _check_made(store)
    said = _check_balances(store, unit)
    said += _check_sums(store, unit)
    return said + check_pools(store, complete=complete, pool_values=pool_values, unit=unit)


def _look_up_spent(store: Store) -> None:
    """Put every spending, with what is known of its coin, into table spent."""
    lost = " OR ".join(
        f"(txid = '{txid}' AND height = {heights[0]})"
        for txid, heights in DUPLICATE_COINBASES.items()
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE spent AS SELECT inputs.height, inputs.txid, spent_txid, "
        "spent_vout, inputs.value AS stated, made.value AS made, made.txid IS NOT NULL AS here, "
        "coalesce(made.value, inputs.value) AS value FROM inputs LEFT JOIN (SELECT * FROM outputs "
        f"WHERE NOT ({lost})) AS made ON made.txid = spent_txid AND made.vout = spent_vout"
    )


def _check_stated_values(store: Store) -> None:
    """The value an input gives for its coin is the one the coin was made with."""
    unlike = store.ask(
        "SELECT txid, spent_txid || ':' || spent_vout, stated, made FROM spent "
        f"WHERE stated <> made ORDER BY ALL LIMIT {SHOWN + 1}"
    )
    _refuse(store, "inputs", "a coin with two values, where spent and where made", unlike)


def _check_spent_once(store: Store) -> None:
    twice = store.ask(
        "SELECT spent_txid || ':' || spent_vout, min(txid), max(txid) FROM spent "
        f"GROUP BY spent_txid, spent_vout HAVING count(*) > 1 ORDER BY ALL LIMIT {SHOWN + 1}"
    )
    _refuse(store, "inputs", "a coin spent twice", twice)


def _check_made(store: Store) -> None:
    unknown = store.ask(
        "SELECT txid, spent_txid || ':' || spent_vout FROM spent WHERE NOT here "
        f"ORDER BY ALL LIMIT {SHOWN + 1}"
    )
    _refuse(store, "inputs", "an unknown coin in a complete ledger", unknown)


def _check_balances(store: Store, unit: Unit) -> list[str]:
    """No transaction but a coinbase pays out more than it takes in; the rest is its fee."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE balances AS SELECT height, txid, coinbase, "
        "coalesce(i.value, 0) AS value_in, coalesce(o.value, 0) AS value_out, "
        "coalesce(p.value, 0) AS to_pools, coalesce(i.known, true) AS known "
        "FROM transactions LEFT JOIN (SELECT height, txid, sum(value) AS value, count(value) = "
        "count(*) AS known FROM spent GROUP BY height, txid) AS i USING (height, txid) LEFT JOIN "
        "(SELECT height, txid, sum(value) AS value FROM outputs GROUP BY height, txid) AS o USING "
        "(height, txid) LEFT JOIN (SELECT height, txid, sum(into_pool) AS value FROM pool_flows "
        "GROUP BY height, txid) AS p USING (height, txid)"
    )
    above = store.ask(
        "SELECT txid, value_out + greatest(to_pools, 0) || ' out', "
        "value_in + greatest(-to_pools, 0) || ' in' FROM balances WHERE known AND NOT coinbase AND "
        f"value_out + to_pools > value_in ORDER BY ALL LIMIT {SHOWN + 1}"
    )
    _refuse(store, "transactions", "outputs above inputs", above)
    ((count, fees, unknown),) = store.ask(
        "SELECT count(*) FILTER (known), coalesce(sum(value_in - value_out - to_pools) FILTER "
        "(known), 0), count(*) FILTER (NOT known) FROM balances WHERE NOT coinbase"
    )
    paid = unit.words(int(fees))
    said = [f"balance: {count:,} transactions pay out no more than they take in; fees {paid}"]
    if unknown:
        said.append(f"balance: {unknown:,} transactions not checked: values they spend are unknown")
    return said


def _check_sums(store: Store, unit: Unit) -> list[str]:
    """All that was made or came in is unspent, in pools, or went in fees."""
    if store.ask("SELECT 1 FROM balances WHERE NOT known LIMIT 1"):
        return []
    ((minted, fees, in_pools),) = store.ask(
        "SELECT coalesce(sum(value_out + to_pools) FILTER (coinbase), 0), "
        "coalesce(sum(value_in - value_out - to_pools) FILTER (NOT coinbase), 0), "
        "coalesce(sum(to_pools), 0) FROM balances"
    )
    ((earlier,),) = store.ask("SELECT coalesce(sum(value), 0) FROM spent WHERE NOT here")
    # Counted coin by coin, not as made less spent: a coin spent twice would show here.
    ((unspent,),) = store.ask(
        "SELECT coalesce(sum(value), 0) FROM outputs ANTI JOIN spent ON outputs.txid = spent_txid "
        "AND outputs.vout = spent_vout"
    )
    lost = _lost_value(store)
    if minted + earlier != unspent + fees + in_pools + lost:
        raise LedgerError(
            f"{store.name}: outputs",
            "values do not add up",
            value=f"coinbases {minted} + earlier coins {earlier}, but unspent {unspent + lost} + "
            f"fees {fees} + pools {in_pools}",
            fix="a coin may be spent twice",
        )
    words = [unit.words(int(v)) for v in (minted, earlier, unspent + lost, fees, in_pools)]
    return [
        f"values: coinbases {words[0]} + earlier coins {words[1]} = unspent {words[2]} "
        f"+ fees {words[3]}" + (f" + pools {words[4]}" if in_pools else "")
    ]


def _lost_value(store: Store) -> int:
    """Add up coinbases whose names were used again, spent under the same names later (BIP30)."""
    total = 0
    for txid, (height, _) in DUPLICATE_COINBASES.items():
        ((value,),) = store.ask(
            "SELECT coalesce(sum(value), 0) FROM outputs SEMI JOIN spent ON outputs.txid = "
            "spent_txid AND outputs.vout = spent_vout WHERE txid = ? AND height = ?",
            [txid, height],
        )
        total += int(value)
    return total


def check_pools(
    store: Store,
    *,
    complete: bool = False,
    pool_values: Mapping[str, int] | None = None,
    unit: Unit = SMALLEST,
) -> list[str]:
    """Add up what flowed into and out of every pool, which never holds less than nothing.

    That is looked at after each block: not every source gives the order within one.
    """
    before = dict(pool_values or {})
    check_pool_values(before, POOLS)
    said = []
    for pool, into, out_of, lowest, height in store.ask(
        "SELECT pool, sum(greatest(into_pool, 0)), sum(greatest(-into_pool, 0)), min(held), "
        "min_by(height, (held, height)) FROM (SELECT *, sum(into_pool) OVER (PARTITION BY pool "
        "ORDER BY height) AS held FROM pool_flows) GROUP BY pool ORDER BY pool"
    ):
        known = pool in before or complete
        held = before.get(pool, 0)
        if known and held + lowest < 0:
            raise LedgerError(
                f"{store.name}: pool {pool}",
                "holds less than nothing",
                value=f"{held + lowest} after block {height}",
                fix="flows are missing, or the value it held before is wrong",
            )
        change = int(into - out_of)
        signed = ("+" if change >= 0 else "") + unit.words(change)
        line = f"pool {pool}: {unit.words(int(into))} in, {unit.words(int(out_of))} out, {signed}"
        if pool in before:
            line += f", so {unit.words(int(held + change))} from {unit.words(held)}"
        elif lowest < 0:
            line += f"; it held at least {unit.words(-int(lowest))} before"
        said.append(line)
    return said


def check_token(
    store: Store,
    ledger: AccountLedger,
    token: str,
    *,
    complete: bool = False,
    unit: Unit = SMALLEST,
) -> list[str]:
    """Check that mints less burns is what all accounts hold, and who paid more than it had.

    In a window accounts spend what they had before it. In a complete ledger none can.
    """
    name = f"token {token}" if token else "the chain's own money"
    ((mints, burns),) = store.ask(
        f"SELECT CAST(coalesce(sum(amount) FILTER (sender IN ({_ZERO})), 0) AS VARCHAR), "
        f"CAST(coalesce(sum(amount) FILTER (recipient IN ({_ZERO})), 0) AS VARCHAR) FROM transfers "
        "WHERE token = ?",
        [token],
    )
    minted, burnt = int(mints), int(burns)
    # The database adds up rows, the ledger accounts: two ways that share no arithmetic.
    held = sum(_balances(ledger))
    if minted - burnt != held:
        raise LedgerError(
            f"{store.name}: {name}",
            "mints less burns is not what accounts hold",
            value=f"{minted} - {burnt}, but {held}",
        )
    words = [unit.words(value) for value in (minted, burnt, held)]
    said = [f"{name}: mints {words[0]} - burns {words[1]} = balances {words[2]}"]
    return said + _overdrawn(store, token, name, complete=complete, unit=unit)


def _balances(ledger: AccountLedger) -> list[int]:
    n = len(ledger.accounts)
    change = ledger.amounts.total_by(ledger.receiver, n)
    change = change - ledger.amounts.total_by(ledger.sender, n)
    return change.take(~ledger.is_zero_address()).ints()


def _overdrawn(store: Store, token: str, name: str, *, complete: bool, unit: Unit) -> list[str]:
    """Replay transfers in order, and say who at some time had paid more than it had received."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE moves AS SELECT account, change, height, position, step, out "
        "FROM (SELECT recipient AS account, amount AS change, height, position, step, false AS out "
        "FROM transfers WHERE token = ? AND sender <> recipient UNION ALL SELECT sender, -amount, "
        "height, position, step, true FROM transfers WHERE token = ? AND sender <> recipient) "
        f"WHERE account NOT IN ({_ZERO})",
        [token, token],
    )
    below = (
        "SELECT account, min(held) AS lowest FROM (SELECT account, sum(change) OVER (PARTITION BY "
        "account ORDER BY height, position, step ROWS UNBOUNDED PRECEDING) AS held FROM moves) "
        "GROUP BY account HAVING lowest < 0"
    )
    ((count,),) = store.ask(f"SELECT count(*) FROM ({below})")
    if not count:
        return [f"{name}: no account pays more than it has"]
    worst = store.ask(
        f"SELECT account, CAST(lowest AS VARCHAR) FROM ({below}) ORDER BY lowest, account "
        f"LIMIT {SHOWN + 1}"
    )
    shown = first_few([f"{who} {unit.words(int(lowest))}" for who, lowest in worst], SHOWN)
    if complete:
        raise LedgerError(
            f"{store.name}: {name}",
            f"{count} accounts pay more than they have in a complete ledger",
            value=shown,
            fix="transfers are missing, or out of order",
        )
    return [f"{name}: {count:,} accounts pay more than they took in here: {shown}"]


def _refuse(store: Store, table: str, what: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        shown = first_few([" ".join(str(v) for v in row) for row in rows], SHOWN)
        raise LedgerError(f"{store.name}: {table}", what, value=shown)

"""Money is conserved: what the transactions, pools and tokens of a store must add up to, to a unit.

Each check gives the figures it found, or raises the error that names what breaks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coinhaze.errors import LedgerError, first_few
from coinhaze.ledger.accounts import ZERO_ADDRESSES, AccountLedger
from coinhaze.ledger.checks import check_pool_values
from coinhaze.ledger.coins import DUPLICATE_COINBASES, POOLS
from coinhaze.store.store import Store

SHOWN = 3
_ZERO = ", ".join(f"'{name}'" for name in ZERO_ADDRESSES)


def begins_with_chain(store: Store) -> bool:
    """Tell whether a store has every block of its chain from the first on, with its coinbase."""
    ((first, last, count),) = store.ask("SELECT min(height), max(height), count(*) FROM blocks")
    ((filled,),) = store.ask("SELECT count(DISTINCT height) FROM transactions WHERE coinbase")
    return bool(count > 0 and first == 0 and last == count - 1 and filled == count)


def unknown_coins(store: Store) -> int:
    """Count coins spent whose value neither the spending tells nor another row."""
    if _is_hidden(store):
        return 0
    ((count,),) = store.ask(
        "SELECT count(*) FROM inputs ANTI JOIN (SELECT * FROM outputs WHERE value IS NOT NULL) AS "
        "made ON made.txid = spent_txid AND made.vout = spent_vout WHERE inputs.value IS NULL"
    )
    return int(count)


def _is_hidden(store: Store) -> bool:
    return not store.ask("SELECT 1 FROM outputs WHERE value IS NOT NULL LIMIT 1")


def check_coins(
    store: Store, *, complete: bool = False, pool_values: Mapping[str, int] | None = None
) -> list[str]:
    """Check the balance of every transaction, the sum of all values, and every pool.

    `complete` says that the store begins with its chain: then every coin spent was made in it, and
    no pool ever holds less than nothing. `pool_values` tells what pools held before.
    """
    if _is_hidden(store):
        return ["values are hidden: nothing can be added up"]
    _look_up_spent(store)
    _check_told_values(store)
    _check_spent_once(store)
    if complete:
        _check_made(store)
    said = _check_balances(store)
    said += _check_sums(store)
    return said + check_pools(store, complete=complete, pool_values=pool_values)


def _look_up_spent(store: Store) -> None:
    """Put every spending, with what is known of its coin, into table spent."""
    lost = " OR ".join(
        f"(txid = '{txid}' AND height = {heights[0]})"
        for txid, heights in DUPLICATE_COINBASES.items()
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE spent AS SELECT inputs.height, inputs.txid, spent_txid, "
        "spent_vout, inputs.value AS told, made.value AS made, made.txid IS NOT NULL AS here, "
        "coalesce(made.value, inputs.value) AS value FROM inputs LEFT JOIN (SELECT * FROM outputs "
        f"WHERE NOT ({lost})) AS made ON made.txid = spent_txid AND made.vout = spent_vout"
    )


def _check_told_values(store: Store) -> None:
    """The value an input tells of its coin is the one the coin was made with."""
    unlike = store.ask(
        "SELECT txid, spent_txid || ':' || spent_vout, told, made FROM spent WHERE told <> made "
        f"ORDER BY ALL LIMIT {SHOWN + 1}"
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


def _check_balances(store: Store) -> list[str]:
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
    said = [f"balance: {count:,} transactions pay out no more than they take in; fees {fees:,}"]
    if unknown:
        said.append(f"balance: {unknown:,} transactions not checked: values they spend are unknown")
    return said


def _check_sums(store: Store) -> list[str]:
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
            f"{store.path}: outputs",
            "values do not add up",
            value=f"coinbases {minted} + earlier coins {earlier}, but unspent {unspent + lost} + "
            f"fees {fees} + pools {in_pools}",
            fix="a coin may be spent twice",
        )
    return [
        f"values: coinbases {minted:,} + earlier coins {earlier:,} = unspent {unspent + lost:,} "
        f"+ fees {fees:,}" + (f" + pools {in_pools:,}" if in_pools else "")
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
    store: Store, *, complete: bool = False, pool_values: Mapping[str, int] | None = None
) -> list[str]:
    """Add up what flowed into and out of every pool, which never holds less than nothing.

    That is looked at after each block: not every source tells the order within one.
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
                f"{store.path}: pool {pool}",
                "holds less than nothing",
                value=f"{held + lowest} after block {height}",
                fix="flows are missing, or the value it held before is wrong",
            )
        line = f"pool {pool}: {into:,} in, {out_of:,} out, {into - out_of:+,}"
        if pool in before:
            line += f", so {held + into - out_of:,} from {held:,}"
        elif lowest < 0:
            line += f"; it held at least {-lowest:,} before"
        said.append(line)
    return said


def check_token(
    store: Store, ledger: AccountLedger, token: str, *, complete: bool = False
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
            f"{store.path}: {name}",
            "mints less burns is not what accounts hold",
            value=f"{minted} - {burnt}, but {held}",
        )
    said = [f"{name}: mints {minted:,} - burns {burnt:,} = balances {held:,}"]
    return said + _overdrawn(store, token, name, complete=complete)


def _balances(ledger: AccountLedger) -> list[int]:
    n = len(ledger.accounts)
    change = ledger.amounts.total_by(ledger.receiver, n)
    change = change - ledger.amounts.total_by(ledger.sender, n)
    return change.take(~ledger.is_zero_address()).ints()


def _overdrawn(store: Store, token: str, name: str, *, complete: bool) -> list[str]:
    """Replay transfers in order, and tell who at some time had paid more than it had received."""
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
    shown = first_few([f"{account} {int(lowest):,}" for account, lowest in worst], SHOWN)
    if complete:
        raise LedgerError(
            f"{store.path}: {name}",
            f"{count} accounts pay more than they have in a complete ledger",
            value=shown,
            fix="transfers are missing, or out of order",
        )
    return [f"{name}: {count:,} accounts pay more than they took in here: {shown}"]


def _refuse(store: Store, table: str, what: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        shown = first_few([" ".join(str(v) for v in row) for row in rows], SHOWN)
        raise LedgerError(f"{store.path}: {table}", what, value=shown)

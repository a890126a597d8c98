"""What a store, or a window of one, shows about itself: the completeness record, in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Amounts, Bools, Ints
from coinhaze.errors import InputError
from coinhaze.formats.bitcoin_raw.wire import Malformed, id_text, merkle_root
from coinhaze.formats.registry import lists_whole_blocks
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.completeness import (
    COUNTS,
    HEIGHTS,
    LINKS,
    LOGS,
    MERKLE,
    NO_PREVIOUS,
    NO_ROOT,
    NO_STATEMENT,
    OF_COINS,
    TOTALS,
    BlockCounts,
    Check,
    Completeness,
    check_blocks,
    gaps,
    heights_in_words,
    not_checkable,
    outcome,
)
from coinhaze.ledger.text import text_buffers
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.store.rows import NOT_STATED, StatedTransactions
from coinhaze.store.store import Store

NO_ORDER = "the source gives no index in the block, so that the order of ids is not known"
OLD_STORE = "ingested by a version that did not store what sources say; ingest again"
EMPTY_BLOCKS = "the source lists blocks only where money moved"
NO_LOGS = "the source gives no log indexes"
AT_ONCE = 100_000  # transactions


def coin_completeness(
    store: Store,
    window: LedgerWindow = ALL,
    transactions: tuple[Check, Check] | None = None,
    ids: pa.StringArray | None = None,
) -> Completeness:
    """Check a window of a store of coins.

    What transactions say of themselves need not be compared again where `compare_transactions` did,
    and their ids, sorted by height and index, need not be read again where a ledger has them.
    """
    counts = _counts(store, window)
    if not len(counts.height):
        return Completeness(tuple(not_checkable(name, "no transactions") for name in OF_COINS))
    formats = {source.format for source in store.sources()}
    whole = bool(formats) and all(map(lists_whole_blocks, formats))
    ends = _ends(store, window, (int(counts.height[0]), int(counts.height[-1])))
    stated = _stated(store, counts, ends, window)
    found = check_blocks(counts, whole=whole, ends=ends, stated=stated)
    heights, coinbases, indexes, numbers = found.checks
    merkle, lacking = _merkle(store, counts, ids)
    links, replaced = _links(store, window.inside())
    checks = (
        heights,
        links,
        coinbases,
        indexes,
        numbers,
        *(transactions or _transactions(store, counts)),
        merkle,
    )
    low = [h for h in (found.missing_from, lacking, replaced) if h is not None]
    return Completeness(checks, found.holes, min(low, default=None))


def account_completeness(
    store: Store, window: LedgerWindow = ALL, token: str | None = None
) -> Completeness:
    """Check a window of a store of accounts, of one token or of all of them."""
    inside = window.inside()
    heights, holes = _block_heights(store, inside, token)
    links, replaced = _links(store, inside)
    low = [low for low, _ in holes[:1]] + ([] if replaced is None else [replaced])
    checks = (heights, links, _logs(store, inside, token))
    return Completeness(checks, holes, min(low, default=None))


def _counts(store: Store, window: LedgerWindow) -> BlockCounts:
    found = store.table(
        "SELECT height, count(*) AS transactions, count(*) FILTER (coinbase) AS coinbases, "
        "count(position) AS indexed, count(DISTINCT position) AS indexes, "
        "coalesce(max(position), -1) AS highest "
        f"FROM transactions WHERE {window.inside()} GROUP BY height ORDER BY height"
    )
    return BlockCounts(**{name: _ints(found[name]) for name in found.column_names})


def _ends(store: Store, window: LedgerWindow, seen: tuple[int, int]) -> tuple[int, int]:
    """Give the first and last height a window should have, as far as the store reaches."""
    low, high = seen
    ((first, last),) = store.ask(
        f"SELECT min(height), max(height) FROM blocks WHERE {window.inside()}"
    )
    low, high = min(low, low if first is None else first), max(high, high if last is None else last)
    # A hole may lie at an end of the window, between it and what the store has beyond.
    ((below, above),) = store.ask(
        f"SELECT max(height) FILTER (height < {low}), min(height) FILTER (height > {high}) "
        "FROM transactions"
    )
    low = low if below is None else below + 1
    high = high if above is None else above - 1
    if window.by == "height":
        low = low if window.first is None else max(low, window.first)
        high = high if window.last is None else min(high, window.last)
    return low, high


def _stated(
    store: Store, counts: BlockCounts, ends: tuple[int, int], window: LedgerWindow
) -> tuple[Ints, Ints] | None:
    """Give how many transactions blocks say they have, and their heights."""
    if not store.has_statements:
        return None
    found = store.table(
        "SELECT height, transaction_count FROM stated_blocks WHERE transaction_count IS NOT NULL "
        f"AND height BETWEEN {ends[0]} AND {ends[1]} ORDER BY height"
    )
    heights, numbers = _ints(found["height"]), _ints(found["transaction_count"])
    if window.by == "time":  # blocks near its ends may lie outside
        inside = np.isin(heights, counts.height)
        heights, numbers = heights[inside], numbers[inside]
    return heights, numbers


def _links(store: Store, condition: str) -> tuple[Check, int | None]:
    """Compare each block with the one it names, and give the lowest height that has another."""
    ((links, torn, first),) = store.ask(
        "SELECT count(*), count(*) FILTER (torn), min(height) FILTER (torn) FROM (SELECT b.height, "
        "b.previous <> a.hash AS torn FROM (SELECT * FROM blocks WHERE "
        f"{condition}) b JOIN blocks a ON a.height = b.height - 1 WHERE b.previous IS NOT NULL)"
    )
    ((untold,),) = store.ask(
        f"SELECT count(*) FROM blocks WHERE {condition} AND previous IS NULL AND height > 0"
    )
    if not links:
        why = NO_PREVIOUS if untold else "no two neighbouring blocks"
        return not_checkable(LINKS, why), None
    check = outcome(
        LINKS,
        torn,
        f"height {first}",
        "the block names another before it",
        compared=f"{links:,} links" + (f", {untold:,} blocks name none" if untold else ""),
    )
    return check, first - 1 if torn else None


def compare_transactions(ledger: CoinLedger, stated: StatedTransactions) -> tuple[Check, Check]:
    """Compare inputs and outputs of a ledger with what sources say of their transactions."""
    n, rows, said = len(ledger.txids), stated.tx, stated.columns
    spends = np.bincount(ledger.input_tx, minlength=n)[rows]
    makes = np.bincount(ledger.output_tx, minlength=n)[rows]
    counts = (("inputs", spends, said["input_count"]), ("outputs", makes, said["output_count"]))
    totals = []
    value = ledger.output_value
    if value is not None:
        took = value.take(ledger.input_output).total_by(ledger.input_tx, n).take(rows)
        paid = value.total_by(ledger.output_tx, n).take(rows)
        totals = [("in", took, said["input_total"]), ("out", paid, said["output_total"])]
    return _compared(COUNTS, ledger, rows, counts), _compared(TOTALS, ledger, rows, totals)


def _compared(
    name: str, ledger: CoinLedger, rows: Ints, pairs: Sequence[tuple[str, Ints | Amounts, Ints]]
) -> Check:
    compared, wrong = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    for _, there, said in pairs:
        known = said != NOT_STATED
        compared |= known
        wrong |= known & _differ(there, said)
    if not compared.any():
        return not_checkable(name, NO_STATEMENT)
    words = f"{int(compared.sum()):,} of {len(ledger):,} transactions"
    if not wrong.any():
        return outcome(name, 0, "", compared=words)
    at = np.flatnonzero(wrong)
    row = int(at[np.argmin(rows[at])])
    place = f"height {ledger.heights[int(rows[row])]} transaction {ledger.txids[int(rows[row])]}"
    detail = ", ".join(
        f"{there[row]} of {said[row]} {what} there"
        for what, there, said in pairs
        if said[row] != NOT_STATED and int(there[row]) != said[row]
    )
    return outcome(name, len(at), place, detail, compared=words)


def _differ(there: Ints | Amounts, said: Ints) -> Bools:
    if isinstance(there, Amounts):
        there, said = (there - Amounts.of(said)).signs(), np.zeros_like(said)
    differ: Bools = there != said
    return differ


def _transactions(store: Store, counts: BlockCounts) -> tuple[Check, Check]:
    """Compare as `compare_transactions` does, without a ledger, which may not be had.

    Values are those that inputs give, not those of the coins they spend.
    """
    if not store.has_statements:
        return not_checkable(COUNTS, OLD_STORE), not_checkable(TOTALS, OLD_STORE)
    stretches = list(_stretches(counts))
    numbers = [store.ask(_NUMBERS.format(low=low, high=high))[0] for low, high in stretches]
    checks = []
    for name, at in ((COUNTS, 0), (TOTALS, 2)):
        compared, wrong = (sum(row[at + k] for row in numbers) for k in (0, 1))
        if not compared:
            checks.append(not_checkable(name, NO_STATEMENT))
            continue
        first, detail = "", ""
        if wrong:
            low, high = next(h for h, r in zip(stretches, numbers, strict=True) if r[at + 1])
            query = _FIRST[name].format(low=low, high=high)
            ((height, txid, *seen),) = store.ask(query)
            first = f"height {height} transaction {txid}"
            detail = ", ".join(
                f"{there} of {said} {what} there"
                for what, there, said in zip(_WHAT[name], seen[::2], seen[1::2], strict=True)
                if said is not None and there != said
            )
        words = f"{compared:,} of {int(counts.transactions.sum()):,} transactions"
        checks.append(outcome(name, wrong, first, detail, compared=words))
    return checks[0], checks[1]


# Transactions about which something is stated, beside what is there. Where the value of an input is
# missing, it is not known what all are worth.
_ENDS = (
    "(SELECT height, txid, count(*) AS rows, sum(value) AS total, count(value) AS valued "
    "FROM {table} WHERE height BETWEEN {{low}} AND {{high}} GROUP BY height, txid)"
)
_COMPARED = (
    "(SELECT * FROM stated_transactions WHERE height BETWEEN {low} AND {high}) LEFT JOIN "
    + _ENDS.format(table="inputs")
    + " AS i USING (height, txid) LEFT JOIN "
    + _ENDS.format(table="outputs")
    + " AS o USING (height, txid)"
)
_FEWER = "(input_count <> coalesce(i.rows, 0) OR output_count <> coalesce(o.rows, 0))"
_LESS = (
    "(input_total <> coalesce(i.total, 0) AND coalesce(i.valued = i.rows, true) OR "
    "output_total <> coalesce(o.total, 0) AND coalesce(o.valued = o.rows, true))"
)
_NUMBERS = (
    "SELECT count(*) FILTER (input_count IS NOT NULL OR output_count IS NOT NULL), count(*) FILTER "
    f"{_FEWER}, count(*) FILTER (input_total IS NOT NULL AND coalesce(i.valued = i.rows, true) OR "
    f"output_total IS NOT NULL), count(*) FILTER {_LESS} FROM {_COMPARED}"
)
_FIRST = {
    COUNTS: "SELECT height, txid, coalesce(i.rows, 0), input_count, coalesce(o.rows, 0), "
    f"output_count FROM {_COMPARED} WHERE {_FEWER} ORDER BY height, txid LIMIT 1",
    TOTALS: "SELECT height, txid, coalesce(i.total, 0), input_total, coalesce(o.total, 0), "
    f"output_total FROM {_COMPARED} WHERE {_LESS} ORDER BY height, txid LIMIT 1",
}
_WHAT = {COUNTS: ("inputs", "outputs"), TOTALS: ("in", "out")}


def _stretches(counts: BlockCounts) -> Iterator[tuple[int, int]]:
    """Cut the heights so that not too many transactions are looked at together."""
    part = np.cumsum(counts.transactions) // AT_ONCE
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    for first, after in zip(starts, [*starts[1:], len(part)], strict=True):
        yield int(counts.height[first]), int(counts.height[after - 1])


def _merkle(
    store: Store, counts: BlockCounts, ids: pa.StringArray | None
) -> tuple[Check, int | None]:
    """Compute the roots of all blocks that give theirs, and the lowest height that differs."""
    if not store.has_statements:
        return not_checkable(MERKLE, OLD_STORE), None
    low, high = int(counts.height[0]), int(counts.height[-1])
    roots = dict(
        store.ask(
            "SELECT height, merkle_root FROM stated_blocks WHERE merkle_root IS NOT NULL AND "
            f"height BETWEEN {low} AND {high}"
        )
    )
    if not roots:
        return not_checkable(MERKLE, NO_ROOT), None
    in_order = counts.indexed == counts.transactions
    known = {int(h) for h in counts.height[in_order]} & roots.keys()
    if not known:
        return not_checkable(MERKLE, NO_ORDER), None
    wrong: list[tuple[int, str]] = []
    for height, listed in _ids_by_block(store, counts, known, ids):
        try:
            root = id_text(merkle_root(listed))
        except Malformed as bad:
            raise InputError(f"{store.name}: height {height}: {bad}") from None
        if root != roots[height]:
            wrong.append((height, root))
    lowest = wrong[0][0] if wrong else None
    check = outcome(
        MERKLE,
        len(wrong),
        f"height {lowest}",
        f"the ids there give {wrong[0][1]}" if wrong else "",
        compared=f"{len(known):,} of {len(counts.height):,} blocks",
    )
    return check, lowest


def _ids_by_block(
    store: Store, counts: BlockCounts, known: set[int], ids: pa.StringArray | None
) -> Iterator[tuple[int, list[bytes]]]:
    """Give the ids of the transactions of each block, in order, as they are hashed."""
    row = 0
    for low, high in _stretches(counts):
        here = (low <= counts.height) & (counts.height <= high)
        heights, numbers = counts.height[here].tolist(), counts.transactions[here].tolist()
        if ids is None:
            query = f"SELECT txid FROM transactions WHERE height BETWEEN {low} AND {high} "
            column = store.table(query + "ORDER BY height, position")["txid"].combine_chunks()
        else:
            column, row = ids.slice(row, sum(numbers)), row + sum(numbers)
        offsets, letters = text_buffers(column)
        try:
            octets = bytes.fromhex(letters[offsets[0] : offsets[-1]].tobytes().decode("ascii"))
        except ValueError:
            octets = b""
        if len(octets) != 32 * len(column):
            raise InputError(f"{store.name}: ids between heights {low} and {high} are not hashes")
        hashed = np.frombuffer(octets, np.uint8).reshape(-1, 32)[:, ::-1].tobytes()
        at = 0
        for height, number in zip(heights, numbers, strict=True):
            end = at + 32 * number
            if height in known:
                yield height, [hashed[k : k + 32] for k in range(at, end, 32)]
            at = end


def _block_heights(
    store: Store, inside: str, token: str | None
) -> tuple[Check, tuple[tuple[int, int], ...]]:
    """Check that no block is missing: lists of all blocks, which name the one before, can show it.

    A node is queried only for the blocks of a token's logs.
    """
    found = _ints(
        store.table(
            f"SELECT height FROM blocks WHERE {inside} AND previous IS NOT NULL ORDER BY height"
        )["height"]
    )
    by_node = token != "" and any(source.format == "node" for source in store.sources())
    if by_node or not len(found):
        return not_checkable(HEIGHTS, EMPTY_BLOCKS), ()
    holes = gaps(found, int(found[0]), int(found[-1]))
    check = outcome(
        HEIGHTS,
        sum(high - low + 1 for low, high in holes),
        f"height {holes[0][0]}" if holes else "",
        f"no block {heights_in_words(holes)}",
        compared=f"{len(found):,} heights",
    )
    return check, holes


def _logs(store: Store, inside: str, token: str | None) -> Check:
    """Logs are numbered through a block: those of one transaction come before the next one's."""
    ((rows, wrong, first),) = store.ask(
        "SELECT coalesce(sum(rows), 0), count(*) FILTER (bad), min(height) FILTER (bad) FROM ("
        "SELECT height, rows, low <= lag(high) OVER before OR place < lag(place) OVER before "
        "AS bad FROM (SELECT height, txid, min(step) AS low, max(step) AS high, min(position) AS "
        "place, count(*) AS rows FROM transfers WHERE kind = 'token' AND "
        f"{inside} {'' if token is None else 'AND token = ?'} GROUP BY height, txid) "
        "WINDOW before AS (PARTITION BY height ORDER BY low))",
        [] if token is None else [token],
    )
    if not rows:
        return not_checkable(LOGS, NO_LOGS)
    return outcome(
        LOGS,
        wrong,
        f"height {first}",
        "logs of two transactions stand between each other",
        compared=f"{rows:,} logs",
    )


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column, dtype=np.int64)

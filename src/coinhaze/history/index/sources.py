"""Where the blocks of a history come from: ledgers that can be read, and raw blocks of a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import packing
from coinhaze.formats.money import unit_of
from coinhaze.formats.registry import format_of, is_store
from coinhaze.history.files import Manifest
from coinhaze.history.index.accounts import account_blocks
from coinhaze.history.index.indexer import refuse_other_kind
from coinhaze.history.names import id_of
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.coin_blocks import CoinBlocks, blocks_of
from coinhaze.ledger.completeness import (
    COINBASES,
    HEIGHTS,
    INDEXES,
    LINKS,
    MERKLE,
    NO_STATEMENT,
    OF_COINS,
    TRANSACTIONS,
    Check,
    Completeness,
    heights_in_words,
    not_checkable,
    outcome,
)
from coinhaze.options import ReadKeywords
from coinhaze.readers import read
from coinhaze.solve.pool.limits import workers_for
from coinhaze.units import UNITS, Unit, unit_named

RAW = "bitcoin-blocks"
ADDED = "not checked in what was added"


@dataclass
class BlockSource:
    """Blocks in the order of the chain, with what is known about all of them."""

    where: str
    blocks: Iterator[CoinBlocks]
    transactions: int  # how many there are; 0 where that is not known
    complete: bool  # whether it begins with its chain
    completeness: Completeness = field(default_factory=Completeness)
    notes: tuple[str, ...] = ()
    unit: Unit | None = None  # None where nothing tells


def open_source(
    sources: Sequence[str | Path], manifest: Manifest, options: ReadKeywords
) -> BlockSource:
    """Open what comes after the last commit of a history."""
    where = ", ".join(Path(source).name for source in sources)
    straight = _raw_source([Path(source) for source in sources], manifest, where, options)
    if straight is not None:
        return straight
    ledger = read(list(sources), **options)
    return ledger_source(ledger, manifest, where)


def _raw_source(
    paths: Sequence[Path], manifest: Manifest, where: str, options: ReadKeywords
) -> BlockSource | None:
    """Take raw blocks straight from plain files of a node that begin with the chain.

    None where they do not, or are packed, or only a window of them is wanted: values of earlier
    coins are then read from undo files, as for any ledger.
    """
    if options.keys() - {"complete", "format", "unit"} or not all(path.is_file() for path in paths):
        return None
    named = options.get("format")
    if named not in (None, RAW) or any(packing(path) or is_store(path) for path in paths):
        return None
    if named is None and any(format_of(path) != RAW for path in paths):
        return None
    from coinhaze.formats.bitcoin_raw.chain import RawChain

    chain = RawChain.of(paths)
    grows = manifest.transactions > 0 and manifest.complete
    if not chain.heights or (chain.first_height and not grows):
        return None
    # What the history has is read again only where it ends, to see that it is the same chain.
    after = manifest.last_height - 1 if manifest.transactions else -1
    threads = workers_for(len(chain.places), None)
    blocks = following(chain.blocks(after, threads), manifest, where)
    named = options.get("unit")
    unit = UNITS.get(chain.network.name) if named is None else unit_named(named)
    return BlockSource(where, blocks, 0, True, raw_checks(len(chain.heights)), unit=unit)


def raw_checks(blocks: int) -> Completeness:
    """Say what reading raw blocks in their order shows: what does not hold is an error there."""
    held = {
        HEIGHTS: f"{blocks:,} heights",
        LINKS: f"{blocks:,} blocks",
        COINBASES: f"{blocks:,} blocks",
        INDEXES: f"{blocks:,} blocks",
        TRANSACTIONS: f"{blocks:,} blocks",
        MERKLE: f"{blocks:,} blocks",
    }
    return Completeness(
        tuple(
            outcome(name, 0, "", compared=held[name])
            if name in held
            else not_checkable(name, NO_STATEMENT)
            for name in OF_COINS
        )
    )


def ledger_source(
    ledger: CoinLedger | AccountLedger, manifest: Manifest, where: str = "ledger"
) -> BlockSource:
    """Take the blocks of a ledger."""
    if ledger.completeness.failed:
        holes = ledger.completeness.holes
        which = f": no block {heights_in_words(holes)}" if holes else ""
        raise LedgerError(where, ledger.completeness.line() + which, fix="add what is missing")
    if isinstance(ledger, AccountLedger):
        whole, complete = account_blocks(ledger, where), False
    else:
        whole, complete = blocks_of(ledger, where), ledger.complete
    if manifest.transactions:
        refuse_other_kind(manifest, whole, where)
    blocks = after_commit(whole, manifest, where)
    return BlockSource(
        where,
        iter([blocks] if len(blocks) else []),
        len(blocks),
        complete,
        ledger.completeness,
        ledger.notes,
        unit_of(ledger),
    )


def after_commit(blocks: CoinBlocks, manifest: Manifest, where: str) -> CoinBlocks:
    """Leave out the blocks that a history has; refuse those that do not follow it."""
    done = manifest.transactions
    if not done or not len(blocks):
        return blocks
    if blocks.accounts:
        if len(blocks) < done or id_of(blocks.ids[done - 1].tobytes()) != manifest.tip:
            raise LedgerError(
                where,
                "is not what was indexed with transfers added: other transfers are in it, some are "
                "missing, or it shows that an account had more from the start",
                fix="index it in another folder",
            )
        return blocks.without(done)
    if id_of(blocks.ids[0].tobytes()) == manifest.first_id:
        if len(blocks) < done or id_of(blocks.ids[done - 1].tobytes()) != manifest.tip:
            what = "another chain than that of the history, or a shorter one"
            fix = f"the history ends with block {manifest.last_height}, {manifest.tip}"
            raise LedgerError(where, what, value=id_of(blocks.ids[-1].tobytes()), fix=fix)
        return blocks.without(done)
    first, last = int(blocks.heights[0]), manifest.last_height
    if first < 0 or last < 0:
        raise LedgerError(
            where, "no heights: it is not known what comes after the end of the history"
        )
    if first != last + 1:
        kind = "is missing" if first > last + 1 else "is there already"
        raise LedgerError(
            where,
            f"does not follow the history: block {last + 1 if first > last + 1 else first} {kind}",
            value=first,
            fix=f"the history ends with block {last}: read from {last + 1}",
        )
    return blocks


def following(stream: Iterable[CoinBlocks], manifest: Manifest, where: str) -> Iterator[CoinBlocks]:
    """Give the blocks of a stream that come after those a history has; they all have heights.

    Refuses a height that is missing, and a chain that is not the one of the history.
    """
    begun = manifest.transactions > 0
    last, tip = manifest.last_height, manifest.tip
    for blocks in stream:
        if not begun:
            begun, last = True, int(blocks.heights[0]) - 1
        old = blocks.heights <= last
        done = int(blocks.sizes[old].sum())
        ends_here = bool(done) and int(blocks.heights[old][-1]) == last
        if ends_here and id_of(blocks.ids[done - 1].tobytes()) != tip:
            what = f"another chain than that of the history, which ends at block {last} with"
            raise LedgerError(where, what, value=tip)
        new = blocks.heights[~old]
        wrong = np.flatnonzero(new != last + 1 + np.arange(len(new)))
        if len(wrong):
            missing = last + 1 + int(wrong[0])
            raise LedgerError(where, f"does not follow the history: block {missing} is missing")
        rest = blocks.without(done)
        if len(rest):
            last, tip = int(rest.heights[-1]), id_of(rest.ids[-1].tobytes())
            yield rest


def joined(before: dict[str, Any], now: Completeness, where: str, *, first: bool) -> Completeness:
    """Give the record of a history that has grown: a check holds only where it held every time.

    >>> one, none = Completeness((Check("heights contiguous", "passed"),)), Completeness()
    >>> joined(one.record(), none, "there", first=False).checks[0].words()
    'heights contiguous: not checkable: not checked in what was added'
    """
    if first or not before:
        return now
    again = {check.name: check for check in now.checks}
    return Completeness(
        tuple(
            max(check, again.get(check.name) or not_checkable(check.name, ADDED), key=_gravity)
            for check in Completeness.of_record(before, where).checks
        )
    )


def _gravity(check: Check) -> int:
    """Rank outcomes; of two that are equal the earlier one is given."""
    return ("passed", "not checkable", "failed").index(check.status)


def refuse_same(path: Path, sources: Sequence[str | Path]) -> None:
    """Refuse a history that is to be made of itself."""
    for source in sources:
        if Path(source).exists() and path.exists() and path.samefile(source):
            raise InputError(f"{path}: is the history itself: name what to read it from")

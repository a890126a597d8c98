"""Hot loops of ordered policies: money moves as parcels, each of one source.

Every party has a pile of parcels, read from its front. First in, first out: what arrives joins the
back. Last in, first out: it joins the front, one parcel at a time, so that the front is what came
last. A coin is spent whole: its pile joins the transaction's in one piece, at the back or, last in,
first out, at the front. So inputs line up in order, and are read from the end where the last goes
first.

Parcels never outnumber sources plus payments: an opening is one parcel, a payment cuts at most one
in two, and all else moves parcels or joins them. Memory is set aside for that many and no more.
Slow twin in the tests: tests/solve/parcel_twin.py.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from coinhaze.amounts_kernels import add, below, copy, is_zero, rounded
from coinhaze.kernels import kernel
from coinhaze.solve.exact.pairs_kernels import add_exactly

NONE = -1
# What is counted on the way.
UNUSED, MADE, LIVE, MOST = 0, 1, 2, 3


class Piles(NamedTuple):
    """Each party's pile, a chain of parcels, and the parcels."""

    first: Any  # for each party its first parcel, -1 if it holds nothing
    last: Any
    after: Any  # for each parcel the next one in its pile, or among unused ones
    label: Any
    amount: Any
    count: Any  # first unused parcel, parcels ever made, live ones, most ever live


@kernel()
def _new(piles, label):
    parcel = piles.count[UNUSED]
    if parcel != NONE:
        piles.count[UNUSED] = piles.after[parcel]
    else:
        parcel = piles.count[MADE]
        piles.count[MADE] += 1
    piles.count[LIVE] += 1
    piles.count[MOST] = max(piles.count[MOST], piles.count[LIVE])
    piles.label[parcel] = label
    piles.after[parcel] = NONE
    return parcel


@kernel()
def _drop(piles, parcel):
    piles.after[parcel] = piles.count[UNUSED]
    piles.count[UNUSED] = parcel
    piles.count[LIVE] -= 1


@kernel()
def _lay(piles, party, parcel, stack):
    """Lay a parcel on a pile; it melts into a neighbour of the same source."""
    if piles.first[party] == NONE:
        piles.first[party] = piles.last[party] = parcel
        piles.after[parcel] = NONE
        return
    beside = piles.first[party] if stack else piles.last[party]
    if piles.label[beside] == piles.label[parcel]:
        add(piles.amount, beside, piles.amount, parcel, 1)
        _drop(piles, parcel)
    elif stack:
        piles.after[parcel] = beside
        piles.first[party] = parcel
    else:
        piles.after[beside] = parcel
        piles.after[parcel] = NONE
        piles.last[party] = parcel


@kernel()
def lay_openings(piles, parties, labels, digits):
    """Give each of some parties, which hold nothing yet, one parcel."""
    for k in range(len(parties)):
        parcel = _new(piles, labels[k])
        copy(piles.amount, parcel, digits, k)
        _lay(piles, parties[k], parcel, False)


@kernel()
def _rename(piles, parcel, label, gained, lost):
    """Count a parcel as listed money from now on; note what passed from one source to another."""
    was = piles.label[parcel]
    if was != label:
        add(gained, label, piles.amount, parcel, 1)
        add(lost, was, piles.amount, parcel, 1)
        piles.label[parcel] = label


@kernel()
def _pay(piles, tail, head, digits, row, due, listed, stack, gained, lost):
    """Take an amount from the front of one pile and lay it on another; False if it falls short."""
    copy(due, 0, digits, row)
    while not is_zero(due, 0):
        parcel = piles.first[tail]
        if parcel == NONE:
            return False
        if below(due, 0, piles.amount, parcel):
            cut = _new(piles, piles.label[parcel])
            copy(piles.amount, cut, due, 0)
            add(piles.amount, parcel, due, 0, -1)
            parcel = cut
        else:
            piles.first[tail] = piles.after[parcel]
            if piles.first[tail] == NONE:
                piles.last[tail] = NONE
        add(due, 0, piles.amount, parcel, -1)
        if listed >= 0:
            _rename(piles, parcel, listed, gained, lost)
        _lay(piles, head, parcel, stack)
    return True


@kernel()
def _join(piles, tail, head, listed, stack, gained, lost):
    """Put the whole pile of one party before or behind that of another."""
    first, last = piles.first[tail], piles.last[tail]
    if first == NONE:
        return
    if listed >= 0:
        parcel = first
        while parcel != NONE:
            _rename(piles, parcel, listed, gained, lost)
            parcel = piles.after[parcel]
    piles.first[tail] = piles.last[tail] = NONE
    if piles.first[head] == NONE:
        piles.first[head], piles.last[head] = first, last
    elif stack:
        piles.after[last] = piles.first[head]
        piles.first[head] = first
    else:
        piles.after[piles.last[head]] = first
        piles.last[head] = last


@kernel()
def run(
    piles, order, tail, head, digits, whole, listed, stack, gained, lost, begin, end,
    look_at, look_for, room, figures, orders, powers, elsewhere,
):  # fmt: skip
    """Make payments begin .. end in order, looking at piles on the way; give how many were made.

    `whole` parties are spent whole. `listed` gives each listed party the source its money counts
    as. Before payment `look_at[j]`, in ascending order, the pile of party `look_for[j]` is summed
    up in row j of `figures` and `powers`.
    """
    due = np.zeros((1, digits.shape[1]), np.int64)
    j = 0
    for k in range(begin, end + 1):
        while j < len(look_at) and look_at[j] == k:
            sum_up(piles, look_for[j], room, figures[j], orders, powers[j], elsewhere)
            j += 1
        if k == end:
            break
        row = order[k]
        t, h = tail[row], head[row]
        if whole[t]:
            _join(piles, t, h, listed[h], stack, gained, lost)
        elif not _pay(piles, t, h, digits, row, due, listed[h], stack, gained, lost):
            return k
    return end


class Room(NamedTuple):
    """Room to add a pile up by source: all zero between piles."""

    amount: Any  # for each source, and one row more for the total
    seen: Any


@kernel()
def by_source(piles, party, room):
    """Add a pile up by source, in the order sources are met; give how many there are."""
    count = 0
    total = len(room.amount) - 1
    parcel = piles.first[party]
    while parcel != NONE:
        label = piles.label[parcel]
        if is_zero(room.amount, label):
            room.seen[count] = label
            count += 1
        add(room.amount, label, piles.amount, parcel, 1)
        add(room.amount, total, piles.amount, parcel, 1)
        parcel = piles.after[parcel]
    return count


@kernel()
def _clear(room, count):
    for k in range(count):
        room.amount[room.seen[k]] = 0
    room.amount[len(room.amount) - 1] = 0


# What is said of a stack of lots.
BITS, SOURCES, TOP, TOP_SHARE, EXPOSURE, LISTED_BITS = 0, 1, 2, 3, 4, 5
FIGURES = 6


@kernel()
def sum_up(piles, party, room, figures, orders, powers, elsewhere):
    """Tell of one pile: bits, sources, the largest of them, what is listed, sums of p^order."""
    count = by_source(piles, party, room)
    figures[:] = 0.0
    powers[:] = 0.0
    if count == 0:
        figures[:] = np.nan
        powers[:] = np.nan
        return
    total = rounded(room.amount, len(room.amount) - 1)
    top = room.seen[0]
    lost, lost_listed = 0.0, 0.0
    for k in range(count):
        label = room.seen[k]
        if below(room.amount, top, room.amount, label) or (
            label < top and not below(room.amount, label, room.amount, top)
        ):
            top = label
        p = rounded(room.amount, label) / total
        surprise = -p * math.log2(p) if count > 1 else 0.0
        figures[BITS], lost = add_exactly(figures[BITS], lost, surprise)
        if label != elsewhere:
            figures[EXPOSURE] += p
            figures[LISTED_BITS], lost_listed = add_exactly(
                figures[LISTED_BITS], lost_listed, surprise
            )
        for j in range(len(orders)):
            powers[j] += p ** orders[j]
    figures[BITS] += lost
    figures[LISTED_BITS] += lost_listed
    figures[EXPOSURE] = min(figures[EXPOSURE], 1.0)
    figures[SOURCES] = count
    figures[TOP] = top
    figures[TOP_SHARE] = rounded(room.amount, top) / total
    _clear(room, count)


@kernel()
def sum_up_all(piles, parties, room, figures, orders, powers, elsewhere):
    """Tell of the piles of several parties."""
    for k in range(len(parties)):
        sum_up(piles, parties[k], room, figures[k], orders, powers[k], elsewhere)


@kernel()
def read_piles(piles, parties):
    """List the parcels of several parties from the front: owner's place, source, amount."""
    count = 0
    for party in parties:
        parcel = piles.first[party]
        while parcel != NONE:
            count += 1
            parcel = piles.after[parcel]
    owner, label = np.empty(count, np.int64), np.empty(count, np.int64)
    amount = np.empty((count, piles.amount.shape[1]), np.int64)
    at = 0
    for k in range(len(parties)):
        parcel = piles.first[parties[k]]
        while parcel != NONE:
            owner[at] = k
            label[at] = piles.label[parcel]
            copy(amount, at, piles.amount, parcel)
            at += 1
            parcel = piles.after[parcel]
    return owner, label, amount

"""Hot loops of ordered policies: money moves as lots, each of one source.

Every party has a queue of lots, read from its front. First in, first out: what arrives joins the
back. Last in, first out: it joins the front, one lot at a time, so that the front is what came
last. A coin is spent whole: its queue joins the transaction's in one piece, at the back or, last
in, first out, at the front. So inputs line up in order, and are read from the end where the last
goes first.

Lots never outnumber sources plus payments: an opening is one lot, a payment cuts at most one
in two, and all else moves lots or joins them. Memory is set aside for that many and no more.
Slow twin in the tests: tests/solve/lots_twin.py.
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
UNUSED, MADE, LIVE = 0, 1, 2


class Queues(NamedTuple):
    """Each party's queue, a chain of lots, and the lots."""

    first: Any  # for each party its first lot, -1 if it holds nothing
    last: Any
    after: Any  # for each lot the next one in its queue, or among unused ones
    label: Any
    amount: Any
    count: Any  # first unused lot; lots made, which are as many as ever lived at once; live ones


@kernel()
def _new(queues, label):
    lot = queues.count[UNUSED]
    if lot != NONE:
        queues.count[UNUSED] = queues.after[lot]
    else:
        lot = queues.count[MADE]
        queues.count[MADE] += 1
    queues.count[LIVE] += 1
    queues.label[lot] = label
    queues.after[lot] = NONE
    return lot


@kernel()
def _drop(queues, lot):
    queues.after[lot] = queues.count[UNUSED]
    queues.count[UNUSED] = lot
    queues.count[LIVE] -= 1


@kernel()
def _lay(queues, party, lot, stack):
    """Lay a lot on a queue; it melts into a neighbour of the same source."""
    if queues.first[party] == NONE:
        queues.first[party] = queues.last[party] = lot
        queues.after[lot] = NONE
        return
    beside = queues.first[party] if stack else queues.last[party]
    if queues.label[beside] == queues.label[lot]:
        add(queues.amount, beside, queues.amount, lot, 1)
        _drop(queues, lot)
    elif stack:
        queues.after[lot] = beside
        queues.first[party] = lot
    else:
        queues.after[beside] = lot
        queues.after[lot] = NONE
        queues.last[party] = lot


@kernel()
def lay_openings(queues, parties, labels, digits):
    """Give each of some parties, which hold nothing yet, one lot."""
    for k in range(len(parties)):
        lot = _new(queues, labels[k])
        copy(queues.amount, lot, digits, k)
        _lay(queues, parties[k], lot, False)


@kernel()
def _rename(queues, lot, label, gained, lost):
    """Count a lot as listed money from now on; note what passed from one source to another."""
    was = queues.label[lot]
    if was != label:
        add(gained, label, queues.amount, lot, 1)
        add(lost, was, queues.amount, lot, 1)
        queues.label[lot] = label


@kernel()
def _pay(queues, tail, head, digits, row, due, listed, stack, gained, lost):
    """Take an amount from the front of one queue and lay it on another; False if it falls short."""
    copy(due, 0, digits, row)
    while not is_zero(due, 0):
        lot = queues.first[tail]
        if lot == NONE:
            return False
        if below(due, 0, queues.amount, lot):
            cut = _new(queues, queues.label[lot])
            copy(queues.amount, cut, due, 0)
            add(queues.amount, lot, due, 0, -1)
            lot = cut
        else:
            queues.first[tail] = queues.after[lot]
            if queues.first[tail] == NONE:
                queues.last[tail] = NONE
        add(due, 0, queues.amount, lot, -1)
        if listed >= 0:
            _rename(queues, lot, listed, gained, lost)
        _lay(queues, head, lot, stack)
    return True


@kernel()
def _join(queues, tail, head, listed, stack, gained, lost):
    """Put the whole queue of one party before or behind that of another."""
    first, last = queues.first[tail], queues.last[tail]
    if first == NONE:
        return
    if listed >= 0:
        lot = first
        while lot != NONE:
            _rename(queues, lot, listed, gained, lost)
            lot = queues.after[lot]
    queues.first[tail] = queues.last[tail] = NONE
    if queues.first[head] == NONE:
        queues.first[head], queues.last[head] = first, last
    elif stack:
        queues.after[last] = queues.first[head]
        queues.first[head] = first
    else:
        queues.after[queues.last[head]] = first
        queues.last[head] = last


@kernel()
def run(
    queues, order, tail, head, digits, whole, listed, stack, gained, lost, begin, end,
    look_at, look_for, room, figures, orders, powers, elsewhere,
):  # fmt: skip
    """Make payments begin .. end in order, looking at queues on the way; give how many were made.

    `whole` parties are spent whole. `listed` gives each listed party the source its money counts
    as. Before payment `look_at[j]`, in ascending order, the queue of party `look_for[j]` is summed
    up in row j of `figures` and `powers`.
    """
    due = np.zeros((1, digits.shape[1]), np.int64)
    j = 0
    for k in range(begin, end + 1):
        while j < len(look_at) and look_at[j] == k:
            sum_up(queues, look_for[j], room, figures[j], orders, powers[j], elsewhere)
            j += 1
        if k == end:
            break
        row = order[k]
        t, h = tail[row], head[row]
        if whole[t]:
            _join(queues, t, h, listed[h], stack, gained, lost)
        elif not _pay(queues, t, h, digits, row, due, listed[h], stack, gained, lost):
            return k
    return end


class Room(NamedTuple):
    """Room to add a queue up by source: all zero between queues."""

    amount: Any  # for each source, and one row more for the total
    seen: Any


@kernel()
def by_source(queues, party, room):
    """Add a queue up by source, in the order sources are met; give how many there are."""
    count = 0
    total = len(room.amount) - 1
    lot = queues.first[party]
    while lot != NONE:
        label = queues.label[lot]
        if is_zero(room.amount, label):
            room.seen[count] = label
            count += 1
        add(room.amount, label, queues.amount, lot, 1)
        add(room.amount, total, queues.amount, lot, 1)
        lot = queues.after[lot]
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
def sum_up(queues, party, room, figures, orders, powers, elsewhere):
    """Tell of one queue: bits, sources, the largest of them, what is listed, sums of p^order."""
    count = by_source(queues, party, room)
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
def sum_up_all(queues, parties, room, figures, orders, powers, elsewhere):
    """Tell of the queues of several parties."""
    for k in range(len(parties)):
        sum_up(queues, parties[k], room, figures[k], orders, powers[k], elsewhere)


@kernel()
def read_queues(queues, parties):
    """List the lots of several parties from the front: owner's place, source, amount."""
    count = 0
    for party in parties:
        lot = queues.first[party]
        while lot != NONE:
            count += 1
            lot = queues.after[lot]
    owner, label = np.empty(count, np.int64), np.empty(count, np.int64)
    amount = np.empty((count, queues.amount.shape[1]), np.int64)
    at = 0
    for k in range(len(parties)):
        lot = queues.first[parties[k]]
        while lot != NONE:
            owner[at] = k
            label[at] = queues.label[lot]
            copy(amount, at, queues.amount, lot)
            at += 1
            lot = queues.after[lot]
    return owner, label, amount

"""Hot loops of the temporal graph: the ledger replayed step by step.

Flows come sorted by step, as `order` says; within a step all spending comes before all receiving.
Balances are digits of base 2^32, lowest first, the last one signed, as in `Amounts`.
Slow twins in the tests: tests/graph/test_snapshots.py, and the model itself in tests/twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.amounts_kernels import add, below
from coinhaze.kernels import kernel


@kernel()
def _step_end(order, step, first):
    last = first
    while last < len(order) and step[order[last]] == step[order[first]]:
        last += 1
    return last


@kernel()
def replay(order, step, tail, head, holder, digits, holders):
    """Find each holder's lowest balance and receipts, and the snapshots each flow leaves and meets.

    `holder` numbers the parties that hold money, -1 for others. A party that does not hold has one
    snapshot, 0; so has a holder's opening, and each step in which it receives creates the next.
    """
    balance = np.zeros((holders, digits.shape[1]), np.int64)
    lowest = np.zeros((holders, digits.shape[1]), np.int64)
    receipts = np.zeros(holders, np.int64)
    received = np.full(holders, -1, np.int64)  # the step of the newest receipt
    # Where nobody holds, every party has its one snapshot.
    leaves = np.zeros(len(order) if holders > 0 else 0, np.int32)
    meets = np.zeros(len(leaves), np.int32)
    if holders == 0:
        return lowest, receipts, leaves, meets
    first = 0
    while first < len(order):
        last = _step_end(order, step, first)
        for k in range(first, last):
            row = order[k]
            h = holder[tail[row]]
            if h >= 0:
                leaves[row] = receipts[h]
                add(balance, h, digits, row, -1)
                if below(balance, h, lowest, h):
                    lowest[h] = balance[h]
        for k in range(first, last):
            row = order[k]
            h = holder[head[row]]
            if h >= 0:
                if received[h] != step[row]:
                    received[h] = step[row]
                    receipts[h] += 1
                meets[row] = receipts[h]
                add(balance, h, digits, row, 1)
        first = last
    return lowest, receipts, leaves, meets


@kernel()
def carries(order, step, tail, head, holder, digits, balance, total):
    """Find what each holder retains at each receipt, given its opening balance.

    Returns, for receipts at which something is retained, the party, the number of the snapshot that
    retains it, and the amount; `balance` is used up, `total` is the number of all receipts.
    """
    receipts = np.zeros(len(balance), np.int64)
    received = np.full(len(balance), -1, np.int64)
    party = np.empty(total, np.int64)
    snapshot = np.empty(total, np.int64)
    retained = np.empty((digits.shape[1], total), np.int64)
    count = 0
    first = 0
    while total > 0 and first < len(order):
        last = _step_end(order, step, first)
        for k in range(first, last):
            row = order[k]
            h = holder[tail[row]]
            if h >= 0:
                add(balance, h, digits, row, -1)
        for k in range(first, last):
            row = order[k]
            h = holder[head[row]]
            if h < 0:
                continue
            if received[h] != step[row]:
                anything = False
                for j in range(digits.shape[1]):
                    retained[j, count] = balance[h, j]
                    anything = anything or balance[h, j] != 0
                if anything:
                    party[count] = head[row]
                    snapshot[count] = receipts[h]
                    count += 1
                received[h] = step[row]
                receipts[h] += 1
            add(balance, h, digits, row, 1)
        first = last
    return party[:count], snapshot[:count], retained[:, :count]


@kernel()
def slot_times(slot, tail, head, leaves, meets, step, never, first_in, first_out):
    """Record for each slot the first step at which money comes in, and at which it goes out."""
    first_in[:] = never
    first_out[:] = never
    several = len(leaves) > 0
    for row in range(len(tail)):
        out = slot[tail[row]] + (leaves[row] if several else 0)
        into = slot[head[row]] + (meets[row] if several else 0)
        first_out[out] = min(first_out[out], step[row])
        first_in[into] = min(first_in[into], step[row])


@kernel()
def number_born(used, born, steps, number):
    """Number the slots that are used in the order in which they came into being.

    Slots of one step stand in their order. Steps count from -1, which stands for what existed
    before all of them. Gives the step of each so numbered; `number` is -1 for the others.
    """
    place = np.zeros(steps + 1, np.int64)
    for s in range(len(used)):
        if used[s]:
            place[born[s] + 2] += 1
    for k in range(steps):
        place[k + 1] += place[k]
    sorted_born = np.empty(place[steps], born.dtype)
    for s in range(len(used)):
        if used[s]:
            at = place[born[s] + 1]
            place[born[s] + 1] += 1
            number[s] = at
            sorted_born[at] = born[s]
    return sorted_born


@kernel()
def flow_nodes(slot, tail, head, leaves, meets, number):
    """Return the node that each flow leaves and the one it meets."""
    leaving = np.empty(len(tail), number.dtype)
    meeting = np.empty(len(tail), number.dtype)
    several = len(leaves) > 0
    for row in range(len(tail)):
        leaving[row] = number[slot[tail[row]] + (leaves[row] if several else 0)]
        meeting[row] = number[slot[head[row]] + (meets[row] if several else 0)]
    return leaving, meeting


@kernel()
def name_nodes(slot, holds, number, nodes):
    """Return the party of each node, and its snapshot number for that holder, -1 if it has none."""
    party = np.empty(nodes, number.dtype)
    snapshot = np.empty(nodes, number.dtype)
    for p in range(len(holds)):
        for s in range(slot[p], slot[p + 1]):
            if number[s] >= 0:
                party[number[s]] = p
                snapshot[number[s]] = s - slot[p] if holds[p] else -1
    return party, snapshot

"""Hot loops of growth: walks forward along edges, and the share of money on each edge.

Slow twins in the tests: tests/growth/test_growth.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.sketch.kernels import mix

_WEYL = np.uint64(0x9E3779B97F4A7C15)


@kernel()
def running_shares(start, weight):
    """Return the running sum of each row's weights, as a share of the row's sum."""
    reach = np.empty(len(weight))
    for row in range(len(start) - 1):
        total = 0.0
        for e in range(start[row], start[row + 1]):
            total += weight[e]
        done = 0.0
        for e in range(start[row], start[row + 1]):
            done += weight[e]
            reach[e] = done / total
    return reach


@kernel()
def walk_forward(start, head, reach, pays, first, length, seed):
    """Walk from each of `first` until `length` payments are made, or no edge leads on.

    Returns the node that each payment leads to, -1 once a walk is over, and the node where each
    finished walk stopped, -1 for one that is not finished. Walk w draws from its own random stream,
    independent of the other walks.
    """
    visited = np.full((len(first), length + 1), -1, np.int32)
    ends = np.full(len(first), -1, np.int32)
    for w in range(len(first)):
        state = mix(mix(np.uint64(seed) * _WEYL) + np.uint64(w) * _WEYL)
        node = first[w]
        visited[w, 0] = node
        made = 0
        while made < length:
            low, high = start[node], start[node + 1]
            if low == high:
                ends[w] = node
                break
            state += _WEYL
            u = np.float64(mix(state) >> np.uint64(11)) * 2.0**-53
            high -= 1
            while low < high:  # the first edge whose running share is above u
                middle = (low + high) // 2
                if reach[middle] > u:
                    high = middle
                else:
                    low = middle + 1
            node = head[low]
            if pays[low]:
                made += 1
                visited[w, made] = node
    return visited, ends


@kernel()
def move_on(tail, head, share, mass):
    """Move mass along edges in order, in place: later edges pass on what arrived before."""
    for e in range(len(tail)):
        mass[head[e]] += share[e] * mass[tail[e]]


@kernel()
def pay_on(tail, head, share, mass):
    """Return the mass that edges bring to every node, each node's mass being split by share."""
    found = np.zeros(len(mass))
    for e in range(len(tail)):
        found[head[e]] += share[e] * mass[tail[e]]
    return found

"""How large rings are in effect, and which of their members can really have been spent.

A ring of entropy H is as good as 2^H equally likely members. Every coin is spent once, so rings
also restrain each other: a member is admissible if some assignment of a coin of its own to every
ring gives it to that ring (Wicht et al., matching-based untraceability). With one such matching at
hand, another that uses an edge exists exactly if the edge closes an alternating cycle (both ends in
one strongly connected component) or begins an alternating path to a coin nobody needs: polynomial,
where counting the matchings is not.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
import scipy.sparse.csgraph

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.side_by_side import ComparedScores
from coinhaze.measures.entropy import effective_number
from coinhaze.measures.intervals import surprise
from coinhaze.observer.decoys import ring_starts


def ring_sizes(ledger: CoinLedger) -> pa.Table:
    """Give every ring's members, bits, effective size 2^bits and its likeliest member's chance.

    >>> ledger = CoinLedger.from_transactions(
    ...     [{"txid": "t", "rings": [["a:0", "b:0", "c:0", "d:0"]], "outputs": 1}]
    ... )
    >>> ring_sizes(ledger).to_pylist()
    [{'ring': 'ring:t:0', 'members': 4, 'bits': 2.0, 'effective': 4.0, 'top_probability': 0.25}]
    """
    if not ledger.has_rings:
        raise UsageError("this ledger has no rings, so they have no size")
    start = ring_starts(ledger)
    members = np.diff(np.append(start, len(ledger.ring_tx)))
    chance = ledger.ring_probability
    if chance is None:
        chance = np.repeat(1 / members, members)
    bits = np.add.reduceat(surprise(chance), start)
    txids = ledger.txids.take(pa.array(ledger.ring_tx[start]))
    vins = pc.cast(pa.array(ledger.ring_vin[start]), txids.type)
    return pa.table(
        {
            "ring": pc.binary_join_element_wise(pa.scalar("ring", txids.type), txids, vins, ":"),
            "members": members,
            "bits": bits,
            "effective": effective_number(bits),
            "top_probability": np.maximum.reduceat(chance, start),
        }
    )


def admissible_edges(ring: Ints, coin: Ints, rings: int, coins: int) -> Bools:
    """Tell which of the edges (ring, coin) some matching that covers every ring uses."""
    edges = scipy.sparse.csr_array((np.ones(len(ring)), (ring, coin)), shape=(rings, coins))
    match = scipy.sparse.csgraph.maximum_bipartite_matching(edges, perm_type="column")
    if np.any(match < 0):
        short = int(np.flatnonzero(match < 0)[0])
        raise InputError(
            f"ring {short}: no way to give every ring a coin of its own; a coin can be spent once"
        )
    # Rings point to coins they could take instead, coins to the ring that has them now.
    other = coin != match[ring]
    tail = np.concatenate([ring[other], rings + match])
    head = np.concatenate([rings + coin[other], np.arange(rings)])
    graph = scipy.sparse.csr_array(
        (np.ones(len(tail)), (tail, head)), shape=(rings + coins, rings + coins)
    )
    _, component = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    free = np.ones(coins, dtype=np.bool_)
    free[match] = False
    ends = _reaching(graph, rings + np.flatnonzero(free))
    found: Bools = ~other | (component[ring] == component[rings + coin]) | ends[rings + coin]
    return found


def _reaching(graph: scipy.sparse.csr_array, ends: Ints) -> Bools:
    """Tell which nodes lead to any of some ends."""
    n = graph.shape[0]
    # One more node that every end leads to: walked backwards from there, all are found at once.
    tail, head = graph.nonzero()
    back = scipy.sparse.csr_array(
        (
            np.ones(len(tail) + len(ends)),
            (np.concatenate([head, np.full(len(ends), n)]), np.concatenate([tail, ends])),
        ),
        shape=(n + 1, n + 1),
    )
    found = np.zeros(n + 1, dtype=np.bool_)
    order = scipy.sparse.csgraph.breadth_first_order(back, n, return_predecessors=False)
    found[order] = True
    return found[:n]


def spendable_members(compared: ComparedScores) -> Floats:
    """Count the coins that the rings of a coin's transaction can have spent between them."""
    ledger = compared.ledger
    if not ledger.has_rings:
        return np.full(len(compared.scores), math.nan)
    key = ledger.ring_tx * (int(ledger.ring_vin.max()) + 1) + ledger.ring_vin
    _, ring = np.unique(key, return_inverse=True)
    coins, coin = np.unique(ledger.ring_output, return_inverse=True)
    retained = admissible_edges(ring, coin, int(ring.max()) + 1, len(coins))
    pairs = np.unique(np.stack([ledger.ring_tx[retained], coin[retained]]), axis=1)
    count = np.bincount(pairs[0], minlength=len(ledger.txids)).astype(np.float64)
    count[count == 0] = math.nan
    return compared.by_coin(lambda made: float(count[ledger.output_tx[made]]))

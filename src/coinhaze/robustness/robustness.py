"""Robustness: how bits fall as an observer learns the origins of more and more payments.

A world states, for every payment in doubt, where it really came from: drawn from the chain's own
probabilities, or given as links. The observer then learns links of that world one by one, in the
most harmful order (greedily: each time the link that lowers bits most) or at random.

What one more link takes is found without a new solve for each. It changes one row of Q: a share w
of receiver r's row goes to origin o instead of sender s. By the Sherman-Morrison formula every row
of B then moves along one vector,

    B' = B + N e_r w (B_o - B_s) / (1 - w (N_or - N_sr)),

so after one factorisation of I - Q a link costs a few vector operations, and only coins that can
have come through r, and sources on which B_o and B_s differ, need to be examined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.links import Link, Links
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.links import linked_node
from coinhaze.observer.policies import POLICIES
from coinhaze.options import ModelKeywords, RobustnessOptions
from coinhaze.solve import score_or_reached
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.source import CHAIN_SETTINGS, Source, graph_of, only

AT_ONCE = 64  # right-hand sides whose solutions are held dense
# The share of a walk that still leaves a cycle closed by a link; below this, it is rounding.
NEVER_ENDS = 1e-12


@dataclass(frozen=True)
class RowChange:
    """A link as a change of one row: the share that moves from the sender to the origin."""

    receiver: int
    sender: int
    origin: int
    share: float


class Gains:
    """A chain prepared to evaluate links: one factorisation, and the solutions computed so far."""

    def __init__(self, chain: AbsorbingChain) -> None:
        self.chain = chain
        # From other nodes the walk never ends, and I - Q would have no inverse.
        self.ending = np.flatnonzero(_ends(chain))
        self.place = np.full(len(chain), -1)
        self.place[self.ending] = np.arange(len(self.ending))
        q = chain.Q[self.ending][:, self.ending]
        system = scipy.sparse.csc_array(scipy.sparse.eye_array(len(self.ending)) - q)
        self.factors = scipy.sparse.linalg.splu(system)

    def visits(self, rows: Ints, columns: Ints) -> Floats:
        """Return entries of N: how often walks from `rows` visit `columns`."""
        found = np.zeros((len(rows), len(columns)))
        for first, solved in self._solves(columns, "N"):
            inside = self.place[rows] >= 0
            found[inside, first : first + solved.shape[1]] = solved[self.place[rows[inside]]]
        return found

    def arrivals(self, rows: Ints) -> scipy.sparse.csr_array:
        """Return rows of B."""
        r = self.chain.R[self.ending].T.tocsr()
        parts = [scipy.sparse.csr_array((r @ x).T) for _, x in self._solves(rows, "T")]
        empty = scipy.sparse.csr_array((0, len(self.chain.outcomes)))
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts)) if parts else empty

    def _solves(self, nodes: Ints, side: str) -> Iterator[tuple[int, Floats]]:
        for first in range(0, len(nodes), AT_ONCE):
            places = self.place[nodes[first : first + AT_ONCE]]
            right = np.zeros((len(self.ending), len(places)))
            inside = np.flatnonzero(places >= 0)
            right[places[inside], inside] = 1
            yield first, self.factors.solve(right, trans=side)


def bits_gained(
    chain: AbsorbingChain,
    coins: Ints,
    moves: Sequence[RowChange],
    *,
    maximum: int,
    chance: np.random.Generator,
) -> tuple[Floats, bool]:
    """Return, for each link, by how many bits in total it lowers the entropy of the coins.

    At most `maximum` of the coins that the links touch are examined, drawn at random; the second
    value says whether a sample was drawn. A link that would close a cycle without a source gains
    -inf.
    """
    gains = Gains(chain)
    receivers, to = np.unique([m.receiver for m in moves], return_inverse=True)
    seen = gains.visits(coins, receivers)
    touched = np.flatnonzero(seen.any(axis=1))
    sampled = len(touched) > maximum
    if sampled:
        touched = np.sort(chance.choice(touched, maximum, replace=False))
    arrivals, seen = gains.arrivals(coins[touched]), seen[touched]
    ends = np.array([[m.sender, m.origin] for m in moves], dtype=np.int64).reshape(-1, 2)
    nodes, at = np.unique(ends, return_inverse=True)
    at = at.reshape(-1, 2)
    between, theirs = gains.visits(nodes, receivers), gains.arrivals(nodes)
    found = np.zeros(len(moves))
    for k, move in enumerate(moves):
        s, o, r = int(at[k, 0]), int(at[k, 1]), int(to[k])
        leaving = 1 - move.share * (between[o, r] - between[s, r])
        if leaving <= NEVER_ENDS:
            found[k] = -np.inf
            continue
        scale = move.share / leaving
        along = (theirs[[o]] - theirs[[s]]).tocoo()
        passing = np.flatnonzero(seen[:, r] > 0)
        before = arrivals[passing][:, along.coords[1]].toarray()
        after = before + np.outer(seen[passing, r], along.data * scale)
        found[k] = _entropy(before) - _entropy(np.maximum(after, 0))
    return found, sampled


def _entropy(p: Floats) -> float:
    positive = p[p > 0]
    return float(-np.sum(positive * np.log2(positive)))


def _ends(chain: AbsorbingChain) -> Bools:
    """Return which nodes' walks can reach an absorber."""
    n = len(chain)
    absorbing = np.flatnonzero(chain.walk.own > 0)
    q = chain.Q.tocoo()
    ends = scipy.sparse.csr_array(
        (
            np.ones(q.nnz + len(absorbing)),
            (
                np.concatenate([q.coords[1], np.full(len(absorbing), n)]),
                np.concatenate([q.coords[0], absorbing]),
            ),
        ),
        shape=(n + 1, n + 1),
    )
    reached = scipy.sparse.csgraph.breadth_first_order(ends, n, return_predecessors=False)
    found = np.zeros(n + 1, dtype=np.bool_)
    found[reached] = True
    return found[:n]


@dataclass(frozen=True, eq=False)
class Robustness:
    """Bits after 0, 1, 2, ... links, of one coin or averaged over all sinks."""

    of: str
    best: Floats  # best-first, one value per number of links learnt
    random: Floats  # one row per seed
    learnt: tuple[str, ...]  # the payments in best-first order
    doubtful: int  # payments whose origin is in doubt
    tried: int  # how many of them have a link the observer could learn
    sampled: bool  # whether the choice used a sample of links or coins

    def to_arrow(self) -> pa.Table:
        """Return a table with one row per number of links."""
        return pa.table(
            {
                "links": np.arange(len(self.best)),
                "best_first_bits": self.best,
                "random_bits": self.random.mean(axis=0),
                "random_bits_low": self.random.min(axis=0),
                "random_bits_high": self.random.max(axis=0),
                "payment": pa.array([None, *self.learnt], pa.string()),
            }
        )


def robustness(
    source: Source,
    *,
    learn: int = RobustnessOptions.learn,
    coin: str | None = None,
    world: Links | None = None,
    seeds: int = 5,
    seed: int = 1,
    tries: int = RobustnessOptions.tries,
    coins: int = RobustnessOptions.coins,
    progress: Progress = silent,
    **settings: Unpack[ModelKeywords],
) -> Robustness:
    """Compute how bits fall as an observer learns up to `learn` links, best-first and at random.

    The bits are those of `coin`, or the mean over all sinks. `world` gives the truth as links;
    without it a world is drawn from `seed`. If many payments are in doubt, the observer can learn
    of `tries` of them, drawn at random; the next link is chosen by its gain on the sinks that any
    of them touches, at most `coins` of those. The bits reported for every step are solved anew for
    all sinks, as `score` does. Random orders are drawn `seeds` times. Each link learnt costs one
    factorisation, coins + 3 tries solves, tries * coins short vectors, and 1 + seeds times a
    `score`. A greedy choice need not be the best set of links.
    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 1}, {"txid": "y", "vout": 0, "value": 1}],
    ...     "outputs": [{"value": 1}, {"value": 1}]}])
    >>> robustness(ledger, learn=2).best
    array([1. , 0.5, 0. ])
    """
    if learn < 1 or seeds < 1 or tries < 1 or coins < 1:
        raise UsageError("learn, seeds, tries and coins are 1 or more")
    chosen = only(settings, CHAIN_SETTINGS)
    shape: dict[str, Any] = {k: v for k, v in settings.items() if k not in CHAIN_SETTINGS}
    policy = chosen.get("policy")
    entry = POLICIES.get(policy)
    walks = policy is None or (entry is not None and entry.takes_links)
    if chosen.get("listed") is not None or not walks:
        raise UsageError(
            "robustness is about bits over all sources under a walk that links can change"
        )
    known: Links = chosen.pop("links", None) or {}
    graph = graph_of(source, **shape)
    study = _Study(graph, chosen, dict(known), coin)
    chance = np.random.default_rng(seed)
    doubtful, links = _world(study, world, chance, tries)
    steps = min(learn, len(links))
    best, learnt, sampled = _best_first(
        study, links, steps, coins, chance, lambda done: progress(done / (seeds + 1))
    )
    random = []
    for order in _orders(links, seeds, chance):
        random.append([best[0], *study.fall(links, order, steps)])
        progress((len(random) + 1) / (seeds + 1))
    return Robustness(
        of=coin or "mean of all sinks",
        best=np.array(best),
        random=np.array(random),
        learnt=tuple(learnt),
        doubtful=doubtful,
        tried=len(links),
        sampled=sampled or len(links) < doubtful,
    )


def _best_first(
    study: _Study,
    links: Links,
    steps: int,
    coins: int,
    chance: np.random.Generator,
    progress: Progress,
) -> tuple[list[float], list[str], bool]:
    """Learn `steps` links, each time the one that gains most; return whether coins were sampled."""
    best = [study.bits({})]
    left, learnt, sampled = dict(links), dict[str, Any](), False
    for step in range(steps):
        chain = study.chain(learnt)
        gains, some = bits_gained(
            chain, study.coins_of_interest, study.moves(left), maximum=coins, chance=chance
        )
        sampled |= some
        payment = list(left)[int(np.argmax(gains))]
        learnt[payment] = left.pop(payment)
        best.append(study.bits(learnt))
        progress((step + 1) / steps)
    return best, list(learnt), sampled


@dataclass
class _Study:
    """A graph, what the observer knows at first, and the coins of interest."""

    graph: TransactionGraph
    settings: dict[str, Any]
    known: dict[str, Any]
    coin: str | None

    def chain(self, learnt: Links) -> AbsorbingChain:
        """Return what the observer believes after learning some links."""
        return absorbing_chain(self.graph, links={**self.known, **learnt} or None, **self.settings)

    def bits(self, learnt: Links) -> float:
        """Return the bits of interest after learning some links."""
        chain = self.chain(learnt)
        if self.coin is not None:
            return float(score_or_reached(chain, nodes=[self.coin]).bits[0])
        return float(score_or_reached(chain).summary().bits_mean)

    def fall(self, links: Links, order: list[str], steps: int) -> Iterator[float]:
        """Yield the bits after each link of an order."""
        for step in range(1, steps + 1):
            yield self.bits({name: links[name] for name in order[:step]})

    @property
    def coins_of_interest(self) -> Ints:
        """The coins whose bits count."""
        if self.coin is not None:
            return np.array([self.graph.names.node(self.coin)])
        return np.flatnonzero(self.graph.sinks)

    def moves(self, links: Links) -> list[RowChange]:
        """Return how links would change rows, on the graph before any link has changed it."""
        graph, found = self.graph, []
        for payment, name in zip(graph.ledger.payment_rows(list(links)), links, strict=True):
            edge = int(graph.payment_edge[payment])
            if edge < 0:
                raise UnknownName(f"payment {name!r} moved nothing, so it cannot be linked")
            receiver, sender = int(graph.head[edge]), int(graph.tail[edge])
            share = float(self.first.Q[receiver, sender])
            if graph.amounts is not None and graph.payment_amount is not None:
                share *= graph.payment_amount[int(payment)] / graph.amounts[edge]
            link = Link.of(name, links[name])
            origin = linked_node(graph, next(iter(link.origins)), receiver)
            found.append(RowChange(receiver, sender, origin, share * link.confidence))
        return found

    @cached_property
    def first(self) -> AbsorbingChain:
        """The chain that follows from the ledger alone."""
        return absorbing_chain(self.graph, **self.settings)


def _world(
    study: _Study, given: Links | None, chance: np.random.Generator, maximum: int
) -> tuple[int, dict[str, Any]]:
    """Return the number of payments in doubt and, for some of them, the origins."""
    if given is not None:
        if any(len(Link.of(name, link).origins) != 1 for name, link in given.items()):
            raise InputError("a world names one origin for each payment")
        return len(given), {k: given[k] for k in list(given)[:maximum] if k not in study.known}
    graph, chain = study.graph, study.chain({})
    rows = _doubtful(study, chain)
    some = rows if len(rows) <= maximum else np.sort(chance.choice(rows, maximum, replace=False))
    names = _payment_names(graph, some)
    links = {}
    for payment, name in zip(some.tolist(), names, strict=True):
        origin = _walked_back(chain, int(graph.tail[graph.payment_edge[payment]]), chance)
        links[name] = {graph.names.of(np.array([origin]))[0].as_py(): 1.0}
    return len(rows), {name: link for name, link in links.items() if name not in study.known}


def _walked_back(chain: AbsorbingChain, sender: int, chance: np.random.Generator) -> int:
    """Draw a node the sender's money came from: the first outside the sender's own past."""
    party = chain.graph.names.party
    node = sender
    while True:
        begin, end = chain.Q.indptr[node], chain.Q.indptr[node + 1]
        odds = np.append(chain.Q.data[begin:end], chain.walk.own[node])
        drawn = int(chance.choice(len(odds), p=odds / odds.sum()))
        if drawn == end - begin:  # its opening: the walk ends at the snapshot that holds it
            return node
        node = int(chain.Q.indices[begin + drawn])
        if party[node] != party[sender]:
            return node


def _doubtful(study: _Study, chain: AbsorbingChain) -> Ints:
    """Find payments whose sender received from several nodes and had nothing of its own."""
    graph = study.graph
    several = (np.diff(chain.Q.indptr) >= 2) & (chain.walk.own == 0)
    edge = graph.payment_edge
    in_doubt = (edge >= 0) & several[graph.tail[np.maximum(edge, 0)]]
    if study.coin is not None:
        node = graph.names.node(study.coin)
        past = scipy.sparse.csgraph.breadth_first_order(chain.Q, node, return_predecessors=False)
        in_past = np.zeros(len(graph), dtype=np.bool_)
        in_past[past] = True
        in_doubt &= in_past[graph.head[np.maximum(edge, 0)]]
    found: Ints = np.flatnonzero(in_doubt)
    if len(found) == 0:
        raise InputError(
            f"{study.coin or 'the ledger'}: no payment is in doubt: each comes from one place"
        )
    return found


def _payment_names(graph: TransactionGraph, payments: Ints) -> list[str]:
    if isinstance(graph.ledger, CoinLedger):
        names: list[str] = graph.ledger.output_names(payments).to_pylist()
        return names
    return [graph.ledger.transfer_ids()[int(p)].as_py() for p in payments]


def _orders(links: Links, seeds: int, chance: np.random.Generator) -> Iterator[list[str]]:
    names = list(links)
    for _ in range(seeds):
        yield [names[k] for k in chance.permutation(len(names))]

"""One coin under other rules, and by other people's measures of its transaction."""

from __future__ import annotations

import math

import numpy as np

from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.explore.coin.answer import Question, exposure_of
from coinhaze.explore.coin.observers import observed, observed_words
from coinhaze.explore.models import (
    Comparators,
    Measure,
    Rule,
)
from coinhaze.explore.nodes import MAX_COINS, Nodes, only
from coinhaze.explore.query import Settings
from coinhaze.explore.views import ViewOptions, Views
from coinhaze.graph import transaction_graph
from coinhaze.graph.graph import Kind
from coinhaze.measures.comparators.registry import (
    COMPARATORS,
    DEGREE,
    EFFECTIVE_SOURCES,
    MINT_CENTRALITY,
    POSSIBLE_SOURCES,
    Comparator,
)
from coinhaze.measures.comparators.side_by_side import compare_measures
from coinhaze.observer.policies import ordered_policies
from coinhaze.options import Time
from coinhaze.solve import score_or_reached

STEPS = 2_000_000  # of Boltzmann's count: about a fifth of a second
# Measures that are read off the coin's own distribution, without a solve.
OF_ROW = (DEGREE, EFFECTIVE_SOURCES, MINT_CENTRALITY, POSSIBLE_SOURCES)
TOO_LARGE = "too many inputs and outputs to count in a short time"
NO_COINS = "a measure of single coins: ask by coin"
WITH_POOL = "its transaction also moved money through a pool"
NOT_MADE = "its transaction is not in the ledger, or has no inputs"
WHOLE = "not all of its past was followed"
LATER = "takes a while here: ask for this rule by itself"


def compare(question: Question) -> Comparators:
    """Tell a coin's bits by every rule, and what other measures say of it."""
    views, nodes, node = question.views, question.nodes, question.node
    rules = [rule(views, nodes, question, policy) for policy in views.policies]
    if views.no_snapshots is not None:
        rules += [_refused(p.column, views.no_snapshots) for p in ordered_policies()]
    measures = [*_own_measures(question), *_transaction_measures(question)]
    measures += _ledger_measures(question)
    observers = observed(question)
    return Comparators(
        ledger=nodes.ledger,
        name=nodes.name(node),
        settings=Settings(
            policy=question.options.policy,
            view=question.options.view,  # type: ignore[arg-type]
            time=_time_of(question.options),
            list=question.options.list,
        ),
        exposure_time=None if question.listed is None else _time_of(question.exposing),
        rules=tuple(rules),
        measures=tuple(sorted(measures, key=lambda m: m.name)),
        observed=observed_words(question, observers),
        observers=observers,
    )


def _time_of(options: ViewOptions) -> Time | None:
    return None if options.view == "coin" else options.time  # type: ignore[return-value]


def rule(views: Views, nodes: Nodes, question: Question, policy: str) -> Rule:
    """Tell a coin's bits by one rule, or why there are none."""
    options = question.options._replace(policy=policy)
    exposing = question.exposing._replace(policy=policy)
    node = question.node
    if options == question.options:
        return _rule(question)
    if options.rule.needs_list:  # all it tells is of the list
        options, node = exposing, question.exposed_node
    if options.rule.needs_list and options.list is None:
        return _refused(policy, "needs a list")
    same_time = not options.ordered or options.time == "temporal"
    if not same_time or (options.ordered and options.view == "address"):
        return _refused(policy, "follows coins, or accounts with time=temporal")
    if not views.is_quick(options):
        return _refused(policy, LATER)
    try:
        nodes = nodes.of_graph(views.graph(options))
        return _rule(Question(views, nodes, options, node, exposing))
    except CoinhazeError as error:
        return _refused(policy, str(error))


def _rule(question: Question) -> Rule:
    figures, exposure = question.figures, exposure_of(question)
    known = not math.isnan(figures.bits)
    return Rule(
        policy=question.options.policy,
        bits=figures.bits,
        bits_low=figures.low,
        bits_high=figures.high,
        certified=figures.certified,
        miss=figures.miss,
        lower_bound=question.lower_bound,
        equal_origins=2.0**figures.bits if known else None,
        exposure=None if exposure is None else exposure.share,
        touched=None if exposure is None else exposure.touched,
    )


def _refused(policy: str, why: str) -> Rule:
    return Rule(
        policy=policy, bits=None, bits_low=None, bits_high=None, equal_origins=None,
        exposure=None, refused=why,
    )  # fmt: skip


def measure(comparator: Comparator, value: float | None, refused: str | None = None) -> Measure:
    """Name a measure, what it says, and its value, or why it has none."""
    known = value is not None and math.isfinite(value)
    return Measure(
        name=comparator.name, value=value, unit=comparator.unit, words=comparator.words,
        refused=None if known else refused or "no answer",
    )  # fmt: skip


def _own_measures(question: Question) -> list[Measure]:
    """Take measures of the coin's own row."""
    figures, row = question.figures, question.row
    bits, sources = figures.bits, figures.sources
    degree = None
    if sources is not None and sources > 1 and not math.isnan(bits):
        degree = bits / math.log2(sources)
    one = "one origin is possible" if sources == 1 else WHOLE
    found = [
        measure(DEGREE, degree, one),
        measure(EFFECTIVE_SOURCES, None if math.isnan(bits) else 2.0**bits),
        measure(POSSIBLE_SOURCES, None if sources is None else float(sources), WHOLE),
    ]
    if question.options.rule.shares:
        kinds = question.nodes.graph.kinds
        made = (
            [kinds[question.outcome_names.node(int(o))] for o in row.outcomes] if row.whole else []
        )
        count = sum(kind in (Kind.transaction, Kind.mint) for kind in made)
        found.append(measure(MINT_CENTRALITY, float(count) if row.whole else None, WHOLE))
    return found


def _transaction_measures(question: Question) -> list[Measure]:
    """Take measures of the transaction that made a coin, on a ledger of it alone."""
    chosen = [comparator for comparator in COMPARATORS if comparator.about == "transaction"]
    why = _not_apart(question.nodes, question.node)
    if why is not None:
        return [measure(comparator, None, why) for comparator in chosen]
    index, coin = question.nodes.index, question.nodes.coin(question.node)
    tx = question.nodes.tx(question.node)
    place = int(np.flatnonzero(index.made(tx) == coin)[0]) + len(index.spent(tx))
    graph = transaction_graph(only(index, [tx]))
    node = int(graph.names.newest[place])
    if node < 0:
        return [measure(comparator, None, "a coin worth nothing") for comparator in chosen]
    name = str(graph.names.of(np.array([node]))[0].as_py())
    alone = score_or_reached(graph, nodes=[name])
    measured = compare_measures(alone, [comparator.name for comparator in chosen], steps=STEPS)
    values = {n: float(column[0]) for n, column in measured.comparators.items()}
    return [measure(c, values[c.name], c.no_answer or TOO_LARGE) for c in chosen]


def _not_apart(nodes: Nodes, node: int) -> str | None:
    """Say why a node's transaction has no such measures; None if it has."""
    if nodes.coin(node) < 0:
        return NO_COINS
    ledger, tx = nodes.index.coins, nodes.tx(node)
    if nodes.index.hides_amounts:
        return "amounts are hidden"
    if np.any(ledger.flow_tx == tx):
        return WITH_POOL
    if not ledger.inside[tx] or not len(nodes.index.spent(tx)):
        return NOT_MADE
    if len(nodes.index.made(tx)) + len(nodes.index.spent(tx)) > MAX_COINS:
        return TOO_LARGE
    return None


def _ledger_measures(question: Question) -> list[Measure]:
    """Take measures that need the ledger around the coin; of rings, where the ledger has them."""
    rings = bool(getattr(question.nodes.graph.ledger, "has_rings", False))
    chosen = [
        comparator
        for comparator in COMPARATORS
        if comparator not in OF_ROW and comparator.about != "transaction"
        if "owners" not in comparator.needs and (rings or "rings" not in comparator.needs)
    ]
    if not chosen:
        return []
    one = score_or_reached(question.belief, nodes=[question.nodes.name(question.node)])
    found = []
    for comparator in chosen:
        try:
            value = float(compare_measures(one, [comparator.name]).comparators[comparator.name][0])
            found.append(measure(comparator, value, comparator.no_answer or NOT_MADE))
        except (InputError, UsageError) as error:
            found.append(measure(comparator, None, str(error)))
    return found

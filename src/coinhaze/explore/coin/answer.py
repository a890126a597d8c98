"""One coin's page: bits with their interval, the sentence, origins, exposure and flow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.explore.coin.exposure import SLACK, Met, is_untouched, met, tell_exposure, threads
from coinhaze.explore.coin.flow import Opened, coin_node, draw_flow, origin_nodes, straight_flow
from coinhaze.explore.coin.observers import observed, observed_words
from coinhaze.explore.coin.origins import NOTHING, OutcomeNames, Row, why
from coinhaze.explore.describe import (
    NOT_TOUCHED,
    band_words,
    bits_words,
    equal_words,
    part_sentence,
    range_words,
    sentence,
    short_id,
    though_words,
)
from coinhaze.explore.distribution import place_of
from coinhaze.explore.models import (
    CoinAnswer,
    Exposure,
    Flow,
    Origin,
    Place,
    Sentence,
    Why,
)
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import CoinQuery
from coinhaze.explore.views import ViewOptions, Views
from coinhaze.measures.mixture import bits_beyond
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import SourceNames
from coinhaze.solve import Lots, origins
from coinhaze.solve.local.mixing import mix
from coinhaze.solve.local.past import Past, past_of
from coinhaze.solve.local.row import no_answer
from coinhaze.solve.lots.scores import origins_in_order
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure

EXACTLY = 1e-9  # bits an interval may have where the whole past is at hand
LOTS = "An ordered policy follows lots, not paths: origins are drawn straight to the coin."
NO_THREAD = (
    "Bits, origins and flow take all payments at once; exposure follows them in order of time. "
    "Choose the order of time for bits and flow as well, and the flow shows the listed money."
)
NO_TIME = "This ledger tells no times for these nodes: the flow is drawn by hop."


@dataclass(frozen=True)
class Figures:
    """What is known of a coin: bits, steps, how many origins are possible, and by what."""

    bits: float
    low: float
    high: float
    steps: float
    sources: int | None
    method: str
    miss: float = 0.0  # the probability that the bits lie elsewhere; 0 where they are proven
    not_followed: float = 0.0  # share of the money whose past was not walked back

    @property
    def certified(self) -> bool:
        """Whether the interval is proven."""
        return self.miss == 0


class Question:
    """One coin under one choice of view: what is needed to answer, found once."""

    def __init__(
        self,
        views: Views,
        nodes: Nodes,
        options: ViewOptions,
        node: int,
        exposing: ViewOptions | None = None,
    ) -> None:
        """Take a node; `exposing` are the view options that exposure is computed with."""
        self.views = views
        self.nodes = nodes
        self.options = options
        self.node = node
        self.exposing = exposing or options
        self.belief = views.session(options).belief
        self.listed = views.listed(options)
        self.past: Past | None = None
        if isinstance(self.belief, AbsorbingChain):
            self.past = past_of(views.session(options).structure, node)
            self.row = Row.of_past(self.past)
        else:
            self.row = Row.of_lots(origins_in_order(self.belief, node), self.belief)
        self.figures = self._figures()

    @property
    def listed_nodes(self) -> Bools | None:
        """Which nodes are listed, None where nothing is."""
        return None if self.listed is None else self.listed.nodes.nodes

    @property
    def outcome_names(self) -> OutcomeNames:
        """Tells of this coin's origins."""
        return OutcomeNames(
            self.nodes, self.belief, self.listed_nodes, self.nodes.balance(self.node)
        )

    @cached_property
    def met(self) -> Met | None:
        """What of its money met the list; None without a list."""
        if self.listed is None:
            return None
        if self.follows_list:
            return met(self.views, self.options, self.listed, self.node, self.past)
        listed, node = self.views.listed(self.exposing), self.exposed_node
        assert listed is not None
        past = past_of(self.views.session(self.exposing).structure, node)
        return met(self.views, self.exposing, listed, node, past)

    @property
    def follows_list(self) -> bool:
        """Whether flow and origins are read as exposure is, so that they can show its thread."""
        return self.exposing.graph == self.options.graph

    @property
    def exposed_node(self) -> int:
        """The node in the graph that exposure is computed in."""
        return int(self.views.nodes_in(self.exposing, self.options, np.array([self.node]))[0])

    @property
    def meets(self) -> float:
        """The share that met the list, 0 where that is not known or the flow does not show it."""
        known = self.met is not None and self.met.known and self.follows_list
        return self.met.share if known and self.met is not None else 0.0

    @property
    def through(self) -> str:
        """What listed money came through, in words."""
        if self.met is None or self.listed is None or len(self.met.entries) != 1:
            return "listed addresses"
        listed = self.views.listed(self.exposing) or self.listed
        name = listed.names[next(iter(self.met.entries))]
        return self.nodes.labels.get(name, short_id(name))

    def threads(self, ranks: Ints) -> list[float] | None:
        """Give of some origins the part that met the list; None where that is unknown."""
        listed, past = self.listed_nodes, self.past
        if (
            not self.follows_list
            or listed is None
            or past is None
            or not isinstance(past.chain.outcomes, SourceNames)
        ):
            return None
        found = threads(past, listed, self.row.outcomes[ranks], self.row.shares[ranks])
        return [float(part) for part in found]

    @property
    def lower_bound(self) -> bool:
        """Whether the coin's bits are a lower bound."""
        bounds = self.belief.lower_bounds
        return bounds is not None and bool(bounds[self.node])

    @property
    def untouched(self) -> bool:
        """Whether poison never reached the coin."""
        return is_untouched(self.belief, self.node)

    def refuse_lost(self) -> None:
        """Refuse a coin whose past never ends: it has no origins to look at."""
        if isinstance(self.belief, AbsorbingChain):
            structure = self.views.session(self.options).structure
            if structure.local.lost(self.node):
                raise no_answer(structure.chain, self.node)

    def _figures(self) -> Figures:
        if self.views.max_origins is not None:
            return walked_figures(
                self.views.session(self.options).structure, self.node, self.views.max_origins
            )
        scored = self.views.row_of(self.options, self.node)
        if scored is not None:
            scores, at = scored
            low, high = float(scores.bits_low[at]), float(scores.bits_high[at])
            found = Figures(
                float(scores.bits[at]), low, high, float(scores.steps[at]),
                _count(float(scores.sources[at])), scores.method,
                miss=float(np.nan_to_num(scores.miss[at])),
            )  # fmt: skip
            # Estimates, and what was scored roughly, are known better by a look at the coin alone.
            if math.isnan(found.bits) or (found.certified and high - low <= thresholds.NEARLY):
                return found
        if isinstance(self.belief, Lots):
            lots = origins_in_order(self.belief, self.node)
            figures = lots.bits, lots.bits_low, lots.bits_high
            return Figures(*figures, math.nan, len(self.row), f"lots, {self.belief.order}")
        if self.untouched:
            return Figures(math.nan, math.nan, math.nan, math.nan, 0, self.options.policy)
        return self._by_past(self.belief)

    def _by_past(self, chain: AbsorbingChain) -> Figures:
        past = self.past
        assert past is not None
        solver = self.views.session(self.options).structure.local
        if solver.lost(self.node):
            return Figures(math.nan, math.nan, math.nan, math.nan, None, "local")
        sources = len(self.row) if past.whole else None
        if past.whole and not past.ordered and len(past) <= thresholds.MAX_SOLVED_PAST:
            return self._by_all(chain, math.nan, sources)
        steps = float(solver.bounded.steps[self.node])
        if math.isnan(steps) and past.whole and past.missing <= SLACK:
            steps = past.steps
        exactly = past.whole and past.ordered
        row = solver.row(self.node, width=EXACTLY if exactly else thresholds.NEARLY)
        if row.shortfall is not None:
            return self._by_all(chain, steps, sources)
        return Figures(row.bits, row.bits_low, row.bits_high, steps, sources, "local")

    def _by_all(self, chain: AbsorbingChain, steps: float, sources: int | None) -> Figures:
        """Bound the bits where loops hold money for long: on a small chain exactly."""
        if len(chain) <= thresholds.MAX_EXACT_NODES:
            found = origins(chain, self.node)
            return Figures(
                found.bits, found.bits_low, found.bits_high, found.steps, sources, "origins"
            )
        low, high = self.views.session(self.options).structure.local.bounded.known(self.node)
        return Figures((low + high) / 2, low, high, steps, sources, "bounds of nodes")


def walked_figures(structure: Structure, node: int, max_origins: int) -> Figures:
    """Bound a coin's bits over the whole chain, of which the structure holds a part."""
    row = mix(structure, [node], [1])
    beyond = bits_beyond(row, max_origins)
    bits = min(max(row.bits, beyond.bits_low), beyond.bits_high)
    steps, sources = math.nan, None
    if not beyond.resting:
        steps, sources = row.steps, len(row.outcomes)
    return Figures(
        bits, beyond.bits_low, beyond.bits_high, steps, sources, "walked back",
        not_followed=beyond.open,
    )  # fmt: skip


def answer_coin(
    question: Question,
    ask: CoinQuery,
    *,
    digest: str,
    provenance: Mapping[str, Any],
    notes: tuple[str, ...],
) -> CoinAnswer:
    """Tell everything of one coin."""
    nodes, node, figures, row = question.nodes, question.node, question.figures, question.row
    opened = Opened.of(ask.open)
    outcome_names = question.outcome_names
    ranks = outcome_names.shown(row, ask.top)
    first = outcome_names.origins(row, ranks)
    flow, more = _flow(question, ask, opened, first)
    tx = nodes.tx(node)
    coin = nodes.coin(node)
    observers = observed(question) if question.views.tells_observers else ()
    spender = -1 if coin < 0 else int(nodes.index.spender[coin])
    return CoinAnswer(
        ledger=nodes.ledger,
        digest=digest,
        settings=ask,
        name=nodes.name(node),
        kind=nodes.kind(node),
        label=nodes.label(node),
        owner=nodes.owner(node),
        amount=nodes.amount(node),
        assumed=nodes.assumed(node),
        time=nodes.time(node),
        height=nodes.height(node),
        made_by=None if coin < 0 else _txid(nodes, tx),
        spent_by=None if spender < 0 else _txid(nodes, spender),
        bits=figures.bits,
        bits_low=figures.low,
        bits_high=figures.high,
        certified=figures.certified,
        miss=figures.miss,
        lower_bound=question.lower_bound,
        method=figures.method,
        sentence=_sentence(question),
        observed=observed_words(question, observers),
        observers=observers,
        why=_why(question),
        place=_place(question),
        steps=figures.steps,
        steps_nearest=None
        if question.past is None or figures.not_followed
        else question.past.nearest_end(),
        sources=figures.sources,
        top_share=_top(question),
        not_followed=figures.not_followed,
        origins=first,
        other=row.other(ranks),
        exposure=exposure_of(question),
        flow=flow,
        notes=(*notes, *more, *question.belief.notes),
        provenance={**provenance, "settings": dict(question.belief.settings)},
    )


def _top(question: Question) -> float | None:
    """Give the largest share of an origin; none where some of the past was not followed."""
    if not len(question.row) or question.figures.not_followed:
        return None
    return min(float(question.row.shares[0]), 1.0)


def _why(question: Question) -> Why | None:
    """Say where the bits come from; not of lots, of lists, or of a past that was cut short."""
    past, bits = question.past, question.figures.bits
    cut = question.lower_bound or question.figures.not_followed > 0
    if past is None or not past.whole or math.isnan(bits) or cut:
        return None
    whole = question.row.missing <= NOTHING and question.options.rule.shares
    return why(past, question.nodes, max(bits, 0.0)) if whole else None


def _txid(nodes: Nodes, tx: int) -> str:
    return str(nodes.index.coins.txids[tx].as_py())


def _count(value: float) -> int | None:
    return None if math.isnan(value) else int(value)


def _flow(
    question: Question, ask: CoinQuery, opened: Opened, first: tuple[Origin, ...]
) -> tuple[Flow, tuple[str, ...]]:
    """Draw the flow; note what differs from the request."""
    nodes, row, past = question.nodes, question.row, question.past
    # Many equal origins are one bundle, out of which some are shown when it is opened.
    bundle = row.equal and not question.meets
    ranks = question.outcome_names.shown(row, opened.origins + (0 if bundle else ask.top))
    if bundle and not opened.origins:
        ranks, first = ranks[:0], ()
    by, notes = ask.by, tuple[str, ...]()
    if by == "time" and not tells_time(nodes, question.node):
        by, notes = "hop", (NO_TIME,)
    if question.listed is not None and not question.follows_list:
        notes = (*notes, NO_THREAD + _held_in_time(question))
    shown = question.outcome_names.origins(row, ranks) if opened.origins else first
    through = question.through
    boxes = origin_nodes(
        shown, row.other(ranks), question.threads(ranks), met=question.meets, through=through
    )
    if not question.follows_list:
        boxes = [box.model_copy(update={"listed": 0.0}) for box in boxes]
    if past is None or not len(row):
        meets = sum(node.listed for node in boxes)
        itself = coin_node(nodes, question.node, listed=meets)
        text = LOTS if past is None else NOT_TOUCHED.capitalize() + "."
        return straight_flow(itself, boxes, by=by, text=text), notes
    listed = question.listed_nodes if question.follows_list else None
    place = {int(row.outcomes[rank]): ((k, 1.0),) for k, rank in enumerate(ranks.tolist())}
    flow = draw_flow(past, nodes, place, boxes, by=by, opened=opened, met=listed, through=through)
    return flow, notes


def _held_in_time(question: Question) -> str:
    """Say what is held in order of time, where that differs: more may have to be assumed."""
    in_time = question.nodes.of_graph(question.views.graph(question.exposing))
    amount = in_time.amount(question.exposed_node)
    if amount is None or amount == question.nodes.amount(question.node):
        return ""
    return f" In order of time it holds {amount.shown}, with more of it assumed."


def tells_time(nodes: Nodes, node: int) -> bool:
    """Tell whether boxes of a flow have dates."""
    return nodes.index.tells_time and (nodes.coin_view or nodes.graph.born is not None)


def _sentence(question: Question) -> Sentence:
    figures = question.figures
    bits, low, high = figures.bits, figures.low, figures.high
    if math.isnan(bits):
        text = "No listed money ever reached it." if question.untouched else "Its past never ends."
        return Sentence(
            text=text, equal_origins=None, equal="none", band=text, though=None, shown="none",
            range="no answer",
        )  # fmt: skip
    bits, low, high = max(bits, 0.0), max(low, 0.0), max(high, 0.0)
    if high <= SLACK:
        bits = 0.0  # one origin, but for roundings
    top = _top(question)
    if not question.options.rule.shares:
        text = "Some of its money touched a listed address; bits count listed addresses only."
    else:
        kind = question.nodes.kind(question.node)
        noun = kind if kind in ("account", "address") else "coin"
        text = sentence(bits, top_share=top, lower_bound=question.lower_bound, noun=noun)
    equal, band = equal_words(bits), band_words(bits)
    if figures.not_followed:
        text, equal = part_sentence(low, high, figures.not_followed)
        band = band if band_words(low) == band_words(high) else "Not known yet"
    shown = bits_words(bits, low, high, lower_bound=question.lower_bound)
    span = range_words(low, high, miss=figures.miss, lower_bound=question.lower_bound)
    if figures.not_followed and span != "exact":
        shown = span.removeprefix("proven range ")  # no number within it is likelier than another
    return Sentence(
        text=text,
        equal_origins=2.0**bits,
        equal=equal,
        band=band,
        though=though_words(top, bits),
        shown=shown,
        range=span,
    )


def _place(question: Question) -> Place | None:
    """Tell where the coin stands, if its ledger is scored under the same rule."""
    if not question.views.has_scores(question.options) or math.isnan(question.figures.bits):
        return None
    return place_of(question.views.scores(question.options), question.figures.bits)


def exposure_of(question: Question) -> Exposure | None:
    """Tell how much of the money came from the list; None without a list."""
    views, nodes, found = question.views, question.nodes, question.met
    listed = views.listed(question.exposing)
    if listed is None or found is None:
        return None
    nodes = nodes.of_graph(views.graph(question.exposing))
    return tell_exposure(found, listed, question.exposing, nodes, np.array([question.exposed_node]))

"""Lots -> scores of all coins, or origins of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.measures import Origins, Scores
from coinhaze.measures.elementary import log2
from coinhaze.measures.entropy import conditional, renyi_from_power, shannon
from coinhaze.measures.intervals import LOG2_E
from coinhaze.observer import policies
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.certify import plain_orders
from coinhaze.solve.lots import lots_kernels as kernels
from coinhaze.solve.lots.lots import Lots, lots
from coinhaze.solve.source import Prepared, Source

# A probability is off by three roundings, its logarithm, their product and the sum by one each:
# each changes the entropy H by less than 2^-52 (H + log2 e), as `slack_from_each` proves.
_ROUNDINGS = 8 * 2.0**-52


def is_ordered(source: Source, settings: Mapping[str, Any]) -> bool:
    """Tell whether a question is about lots, not about a walk."""
    if isinstance(source, Prepared):
        return source.is_ordered
    return isinstance(source, Lots) or policies.is_ordered(settings.get("policy"))


def lots_of(source: Source, settings: Mapping[str, Any]) -> Lots:
    """Go from whatever is given to lots, refusing settings that only walks have."""
    held = source.lots if isinstance(source, Prepared) else source
    if isinstance(held, Lots):
        if settings:
            names = ", ".join(sorted(settings))
            raise UsageError(f"{names} cannot be set any more: lots are given")
        return held
    order, *rest = settings["policy"], "links", "history"
    for name in rest:
        if settings.get(name):
            raise UsageError(f"{name} have no meaning under policy={order}, which is no walk")
    others = {k: v for k, v in settings.items() if k not in ("policy", *rest)}
    return lots(source, order=order, **others)


def score_in_order(held: Lots, rows: Ints, *, renyi: Sequence[float] = ()) -> Scores:
    """Score nodes by their lots; bits are exact but for rounding, and there are no steps."""
    orders = plain_orders(renyi)
    figures, powers = held.figures(rows, orders)
    bits = figures[:, kernels.BITS]
    slack = np.where(figures[:, kernels.SOURCES] > 1, _ROUNDINGS * (bits + LOG2_E), 0.0)
    top = figures[:, kernels.TOP]
    largest = figures[:, kernels.TOP_SHARE]
    exposure = conditional_bits = None
    if held.labels.elsewhere != NO_COLUMN:
        exposure = figures[:, kernels.EXPOSURE]
        listed = conditional(figures[:, kernels.LISTED_BITS], exposure)
        conditional_bits = np.maximum(listed, 0.0)
    plain = {
        0.0: log2(figures[:, kernels.SOURCES]),
        1.0: bits,
        np.inf: 0.0 - log2(largest),
    }
    for order, sums in zip(orders.tolist(), powers.T, strict=True):
        plain[order] = np.maximum(renyi_from_power(sums, order), 0.0)
    return Scores(
        chain=held,
        nodes=rows,
        bits=bits,
        bits_low=np.where(np.isnan(bits), np.nan, np.maximum(bits - slack, 0.0)),
        bits_high=bits + slack,
        steps=np.full(len(rows), np.nan),
        mass=np.where(np.isnan(bits), np.nan, 1.0),
        sources=figures[:, kernels.SOURCES],
        top=np.where(np.isnan(top), NO_COLUMN, top).astype(np.int64),
        top_probability=largest,
        method=f"lots, {held.order}",
        exposure=exposure,
        conditional_bits=conditional_bits,
        renyi={order: plain[order] for order in renyi},
    )


def origins_in_order(held: Lots, node: str | int) -> Origins:
    """Give the distribution over sources of one node's lots, largest first."""
    start = held.graph.names.node(node) if isinstance(node, str) else int(node)
    if not 0 <= start < len(held):
        raise UnknownName(f"no node {start}: the graph has {len(held)}")
    label, amounts = held.queue(start)
    outcomes, group = np.unique(label, return_inverse=True)
    held_by = amounts.total_by(group, len(outcomes)).ints()
    total = sum(held_by)
    if total == 0:
        name = held.graph.names.of(np.array([start]))[0].as_py()
        raise InputError(f"{name} has no answer: no money ever reached it")
    # Python divides integers of any size with one rounding.
    probability = np.array([amount / total for amount in held_by])
    largest = np.array(sorted(range(len(outcomes)), key=lambda k: -held_by[k]))
    bits = shannon(probability) if len(outcomes) > 1 else 0.0
    slack = _ROUNDINGS * (bits + LOG2_E) if len(outcomes) > 1 else 0.0
    nothing = np.zeros(0, dtype=np.int64)
    return Origins(
        chain=held,
        node=start,
        bits=bits,
        bits_low=max(bits - slack, 0.0),
        bits_high=bits + slack,
        steps=np.nan,
        outcomes=outcomes[largest],
        probability=probability[largest],
        flow_from=nothing,
        flow_to=nothing,
        flow_share=np.zeros(0),
        past=nothing,
        way_next=nothing,
        way_end=np.full(len(outcomes), NO_COLUMN),
    )

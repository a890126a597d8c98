"""Keyword arguments of the public functions, typed: a test compares them with the options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from coinhaze.options.library import (
    Accuracy,
    Clustering,
    Device,
    Links,
    Method,
    Nodes,
    Opening,
    Over,
    PolicyLike,
    Preset,
    Time,
    Unknown,
    View,
    WorkerCluster,
)


class ReadKeywords(TypedDict, total=False):
    """Keyword arguments of `read`."""

    format: str | None
    complete: bool
    first: str | int | None
    last: str | int | None
    token: str | None
    columns: str | None
    decimals: int | None
    unit: str | None
    unknown: Unknown


class GraphKeywords(TypedDict, total=False):
    """Keyword arguments of `transaction_graph`."""

    view: View | None
    time: Time | None
    opening: Opening
    top_up: bool
    mint: Literal["each", "one"]
    pools: Literal["each", "merged"]
    clusters: Mapping[str, str] | Clustering | None
    sinks: Literal["balance", "paper"]


class ObserverKeywords(TypedDict, total=False):
    """Keyword arguments of `absorbing_chain`."""

    policy: PolicyLike | None
    listed: Iterable[str] | None
    links: Links | None
    history: Mapping[str, Sequence[int]] | None


class LedgerKeywords(ReadKeywords, GraphKeywords, total=False):
    """All that leads from files to a graph."""


class ModelKeywords(LedgerKeywords, ObserverKeywords, total=False):
    """All that leads from files to a chain."""


class HistoryKeywords(TypedDict, total=False):
    """How the rows of a history are scored, and within which limits."""

    accuracy: Accuracy
    draws: int
    miss: float | None
    simultaneous: bool
    seed: int | None
    threads: int | None
    memory: int | str | None


class HistoryScoreKeywords(HistoryKeywords, total=False):
    """How the coins of a history are scored, and from which proofs."""

    top_sources: int | None
    workers: WorkerCluster | None


class SolveKeywords(HistoryKeywords, total=False):
    """How nodes are scored, and within which limits."""

    over: Over
    method: Method
    preset: Preset | None
    renyi: Sequence[float] | float
    count_sources: bool
    device: Device
    workers: int | str | WorkerCluster | None
    tls_ca: str | Path | None
    tls_cert: str | Path | None
    tls_key: str | Path | None
    seconds: float | None


class ScoringKeywords(SolveKeywords, total=False):
    """Which nodes are scored, and how."""

    nodes: Nodes


class NamedScoreKeywords(ModelKeywords, SolveKeywords, total=False):
    """Keyword arguments of `score` where the nodes are named already."""


class ScoreKeywords(ModelKeywords, ScoringKeywords, total=False):
    """Keyword arguments of `score`."""

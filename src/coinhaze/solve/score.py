"""The one call: a file, ledger, graph or chain goes in, scores come out; or a plan of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import AccuracyError, LedgerError, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.find import find_nodes
from coinhaze.ledger import Ledger
from coinhaze.measures import Scores
from coinhaze.measures.scores import reached
from coinhaze.observer import AbsorbingChain
from coinhaze.options import (
    Accuracy,
    Device,
    Method,
    ModelKeywords,
    Nodes,
    Over,
    Preset,
    ScoreKeywords,
    SolveOptions,
    names_of,
)
from coinhaze.solve.exact.engines import width_of
from coinhaze.solve.lots.scores import is_ordered, lots_of, score_in_order
from coinhaze.solve.planner.plan import Choice, Plan, choose, plan_of, refuse_longer
from coinhaze.solve.pool import WorkerCluster, backend_for
from coinhaze.solve.pool.cluster import opened, refuse_threads
from coinhaze.solve.pool.limits import GPU, THREADS, Budget, bytes_of
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch.sketch import DRAWS
from coinhaze.solve.source import Prepared, Source, only, structure_of
from coinhaze.threads import at_most

# The published conventions: the zero address is an account, tables are topped up, fees kept by
# transactions count as unspent, and the series stops at 0.001.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"mint": "one", "top_up": True, "sinks": "paper", "method": "published"}
}
# What `plan` takes of the options of solving: nothing is scored, so nothing is refused.
PLANNED = names_of(SolveOptions) - {"strict"}


def score(
    source: Source,
    *,
    nodes: Nodes = "sinks",
    accuracy: Accuracy = "exact",
    over: Over = "worst",
    method: Method = "auto",
    preset: Preset | None = None,
    renyi: Sequence[float] | float = (),
    count_sources: bool = False,
    draws: int = DRAWS,
    miss: float | None = None,
    simultaneous: bool = False,
    seed: int | None = None,
    threads: int | None = None,
    device: Device = "cpu",
    workers: int | str | WorkerCluster | None = None,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    memory: int | str | None = None,
    seconds: float | None = None,
    progress: Progress = silent,
    strict: bool = False,
    **settings: Unpack[ModelKeywords],
) -> Scores:
    """Score the sinks of a ledger: how many bits an observer lacks to tell where money came from.

    `source` is a path or several, a ledger, a graph or a chain; further settings are those of
    `read`, `transaction_graph` and `absorbing_chain`. `nodes` may be "all" or names. `accuracy`
    is the widest interval allowed, in bits, or with `over="mean"` their mean; "exact" is 1e-9,
    and "preview" an estimate from `draws` draws, each of whose intervals misses with probability
    `miss` at most (1e-9), or all rows' together if `simultaneous`. Where `miss` is given, a width
    in bits is proven or drawn, whichever is less work. The `seed` of draws is random unless given:
    who knows it beforehand can choose names that mislead. `policy` may also be fifo or lifo, which
    are no walks: see `lots`; their bits are exact. `method` is chosen by the chain's shape
    unless given. `renyi` asks for entropies of further orders, `count_sources` for the number of
    possible sources even where counting takes long (null where it was not counted). `device` is
    what solves tiles: the cpu, a gpu, or auto for a GPU where there is one. `workers` are processes
    that take the place of threads: how many of this machine, a dask scheduler's address, or an open
    `WorkerCluster`; the scores are the same. `tls_ca`, `tls_cert` and `tls_key` are files for an
    encrypted connection to them. `memory` (bytes, or "4GB") and `seconds` are limits: what would
    pass them is refused. `strict` refuses a ledger of which a completeness check failed. Where the
    accuracy is not reached AccuracyError is raised, and its `scores` are what was reached.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> coinhaze.score(ledger).bits
    array([1.])
    """
    options = SolveOptions(
        nodes=nodes, accuracy=accuracy, over=over, method=method, preset=preset, renyi=renyi,
        count_sources=count_sources, draws=draws, miss=miss, simultaneous=simultaneous, seed=seed,
        threads=threads, device=device, workers=workers, tls_ca=tls_ca, tls_cert=tls_cert,
        tls_key=tls_key, memory=memory, seconds=seconds, strict=strict,
    )  # fmt: skip
    if is_ordered(source, settings):
        _refuse_for_walks(options)
        held = lots_of(source, settings)
        if strict:
            refuse_incomplete(held.graph)
        return score_in_order(held, rows_of(held.graph, nodes), renyi=_orders(renyi))
    with _workers(options) as cluster:
        asking = _ask(source, options, settings, cluster)
        if strict:
            refuse_incomplete(asking.chain.graph)
        if asking.budget.seconds is not None:
            refuse_longer(plan_of(asking.chain, asking.rows, asking.choice), asking.budget)
        progress(0.0)  # a caller that no longer wants the answer may raise
        try:
            return _on_device(asking.choice.run(progress), asking.budget)
        except AccuracyError as error:
            if error.scores is not None:
                error.scores = _on_device(error.scores, asking.budget)
            raise


def _workers(options: SolveOptions) -> AbstractContextManager[WorkerCluster | None]:
    """Open the workers that are requested; they start while the ledger is read."""
    refuse_threads(options.workers, options.threads)
    if options.workers is not None and options.device != "cpu":
        raise UsageError("workers solve on their CPUs: leave device out")
    files = {"tls_ca": options.tls_ca, "tls_cert": options.tls_cert, "tls_key": options.tls_key}
    return opened(options.workers, **files)


def _on_device(scores: Scores, budget: Budget) -> Scores:
    """Name the GPU beside the method: last digits are those of its own kind."""
    if budget.backend != GPU:
        return scores
    from coinhaze.solve.gpu.device import describe

    return replace(scores, method=f"{scores.method}, {describe()}")


def score_or_reached(
    source: Source,
    *,
    progress: Progress = silent,
    strict: bool = False,
    **settings: Unpack[ScoreKeywords],
) -> Scores:
    """Score as `score` does; where the accuracy is not reached, give what was, with its note."""
    return reached(lambda: score(source, progress=progress, strict=strict, **settings))


def refuse_incomplete(thing: TransactionGraph | Ledger) -> None:
    """Refuse a ledger, or its graph, of which a completeness check failed."""
    ledger = thing.ledger if isinstance(thing, TransactionGraph) else thing
    record = ledger.completeness
    if record.failed:
        first = record.failed[0]
        raise LedgerError(
            first.first, record.line(), fix="leave strict out to score it as it is, with a note"
        )


def plan(source: Source, **settings: Unpack[ScoreKeywords]) -> Plan:
    """Say what `score` with the same settings would do: rows, columns, method, time, memory.

    A small part of the work is run to find out.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> print(coinhaze.plan(ledger).method)
    sweep
    """
    if is_ordered(source, settings):
        raise UsageError("ordered policies replay the ledger once: there is nothing to plan")
    model = {name: value for name, value in settings.items() if name not in PLANNED}
    options = SolveOptions(**only(settings, PLANNED))
    with _workers(options) as cluster:
        asking = _ask(source, options, cast(ModelKeywords, model), cluster)
        return plan_of(asking.chain, asking.rows, asking.choice)


class _Asking(NamedTuple):
    """A question with all its settings resolved."""

    chain: AbsorbingChain
    rows: Ints
    choice: Choice
    budget: Budget


def _ask(
    source: Source, options: SolveOptions, settings: ModelKeywords, cluster: WorkerCluster | None
) -> _Asking:
    preset, method, memory = options.preset, options.method, options.memory
    if preset is not None:
        if preset not in PRESETS:
            raise UsageError(f"unknown preset {preset!r}: one of {', '.join(PRESETS)}")
        usual = dict(PRESETS[preset])
        published = usual.pop("method")
        method = published if method == "auto" else method
        settings = cast(ModelKeywords, usual | settings)
    budget = Budget(
        options.threads if cluster is None else cluster.count,
        None if memory is None else bytes_of(memory),
        options.seconds,
        backend_for(options.device) if cluster is None else cluster.open,
    )
    if isinstance(source, Prepared) and budget.backend == THREADS:
        budget = replace(budget, backend=source.backend)
    with at_most(budget.threads):
        structure = structure_of(source, budget=budget, **settings)
    chain = structure.chain
    rows = rows_of(chain.graph, options.nodes)
    choice = choose(
        structure,
        rows,
        accuracy=options.accuracy,
        over=options.over,
        method=method,
        renyi=_orders(options.renyi),
        count_sources=options.count_sources,
        draws=options.draws,
        miss=options.miss,
        simultaneous=options.simultaneous,
        seed=options.seed,
        budget=budget,
    )
    return _Asking(chain, rows, choice, budget)


def _orders(renyi: Sequence[float] | float) -> tuple[float, ...]:
    return (renyi,) if isinstance(renyi, int | float) else tuple(renyi)


def _refuse_for_walks(options: SolveOptions) -> None:
    """Refuse what has no meaning where a ledger is replayed once, exactly."""
    drawn = options.draws != DRAWS or options.miss is not None or options.simultaneous
    drawn = drawn or options.seed is not None
    chosen = options.method != "auto" or options.preset is not None or drawn
    if chosen or options.accuracy == "preview":
        raise UsageError(
            "ordered policies replay the ledger once, exactly: they take no method, no preset and "
            "no preview"
        )
    if options.memory is not None or options.seconds is not None:
        raise UsageError("ordered policies cannot tell what they take: leave memory, seconds out")
    width_of(options.accuracy)


def rows_of(graph: TransactionGraph, nodes: str | Iterable[str]) -> Ints:
    """Find the nodes a question is about."""
    if isinstance(nodes, str):
        if nodes == "sinks":
            return np.flatnonzero(graph.sinks)
        if nodes == "all":
            return np.arange(len(graph))
        raise UsageError(f"nodes is sinks, all or a list of names, not {nodes!r}")
    return find_nodes(graph, list(nodes))

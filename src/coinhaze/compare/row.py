"""One reading of one ledger of a comparison: its graph and chain, its scores, its files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.compare.ledgers import ComparedLedger, Reading
from coinhaze.compare.settings import ScoringSettings, command_of
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.growth.growth import growth
from coinhaze.ledger import Ledger
from coinhaze.measures import Scores
from coinhaze.measures.scores import reached
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.knowledge import source_set
from coinhaze.observer.policies import is_ordered, needs_list
from coinhaze.report.files import write_table
from coinhaze.report.provenance import provenance
from coinhaze.report.score_files import write_score_file
from coinhaze.solve.exact.engines import EXACT_WIDTH, score_exactly
from coinhaze.solve.lots.lots import parcels
from coinhaze.solve.lots.payments import check_order
from coinhaze.solve.lots.scores import score_in_order
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.mean import score_for_mean
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.source import GRAPH_SETTINGS, only


@dataclass(frozen=True, eq=False)
class ComparedRow:
    """One reading of one ledger, to be scored; `settings` are those of its graph and chain."""

    one: ComparedLedger
    reading: Reading
    ledger: Ledger
    settings: Mapping[str, Any]
    history: Mapping[str, Sequence[int]] | None
    listed: Sequence[str] | None
    asking: ScoringSettings

    @property
    def policy(self) -> str | None:
        """The policy by which money is split; None for the ledger's default."""
        return self.settings.get("policy")

    def graph(self) -> TransactionGraph:
        """Build the graph."""
        settings = only(dict(self.settings), GRAPH_SETTINGS)
        return transaction_graph(self.ledger, **settings | dict(self.reading.settings))

    def chain(self, graph: TransactionGraph) -> AbsorbingChain | None:
        """Build the chain; None under an ordered policy, which has none."""
        if is_ordered(self.policy):
            check_order(graph)
            return None
        return absorbing_chain(
            graph,
            policy=self.policy,
            links=self.settings.get("links"),
            history=self.history,
            # Poison is undefined without a list; otherwise exposure is added to the bits over all
            # sources.
            listed=self.listed if needs_list(self.policy) else None,
        )

    def write(
        self, path: Path, beside: Path, about: dict[str, Any], progress: Progress = silent
    ) -> str:
        """Score it, write its score and growth files, and return a line that describes them."""
        wall, cpu = time.perf_counter(), time.process_time()
        graph = self.graph()
        chain = self.chain(graph)
        self._write_growth(chain, beside, about)
        rows = np.flatnonzero(graph.sinks)
        scores = self._score(graph, chain, rows, progress)
        exposed, more = self._exposure(graph, rows)
        notes = [*scores.notes, *(note for note in more if note not in scores.notes)]
        shortfall = scores.shortfall
        if exposed is not None:
            shortfall = shortfall or exposed.shortfall
            scores = replace(scores, exposure=exposed.exposure)
        elif self.listed is not None and scores.exposure is None:
            scores = replace(scores, exposure=np.zeros(len(rows)))
        made = provenance(scores, command=command_of(self.one, self.asking))
        made |= about["key"]["made_of"] | {
            "nodes": len(graph),
            "edges": len(graph.tail),
            "mean_interval": _mean_interval(scores),
            "draw_means": None if scores.draw_means is None else scores.draw_means.tolist(),
            "notes": notes,
            "shortfall": shortfall,
        }
        # The score file comes last: its presence shows that everything else is there.
        write_score_file(
            scores, path, name=self.one.name, time=self.reading.time, about=made | about
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return (
            f"{self.one.name}, {self.reading.time}: {len(scores):,} sinks, {scores.method}, "
            f"{wall:.1f} s, {cpu:.1f} s of CPU time"
        )

    def _write_growth(
        self, chain: AbsorbingChain | None, path: Path, about: dict[str, Any]
    ) -> None:
        path.unlink(missing_ok=True)
        if chain is None or chain.listed or self.asking.walks == 0:
            return
        if not np.any(chain.walk.own > 0):
            return
        grown = growth(
            chain,
            walks=self.asking.walks,
            seed=self.asking.seed,
            accuracy="exact" if len(chain) <= thresholds.MAX_EXACT_NODES else "preview",
            threads=self.asking.budget.threads,
            memory=self.asking.budget.memory,
        )
        names = {"name": self.one.name, "time": self.reading.time}
        write_table(grown.to_arrow(), path, names | grown.about() | about)

    def _score(
        self,
        graph: TransactionGraph,
        chain: AbsorbingChain | None,
        rows: Ints,
        progress: Progress,
    ) -> Scores:
        asking = self.asking
        if chain is None:
            return score_in_order(parcels(graph, order=self.policy), rows)  # type: ignore[arg-type]

        def solve() -> Scores:
            return score_for_mean(
                chain,
                rows,
                mean_error=asking.mean_error,
                seconds=asking.seconds,
                seed=asking.seed,
                budget=asking.budget,
                progress=progress,
            )

        return solve() if asking.strict else reached(solve)

    def _exposure(
        self, graph: TransactionGraph, rows: Ints
    ) -> tuple[Scores | None, tuple[str, ...]]:
        """Score the rows against the list, None if none of it is there; also return its notes."""
        if self.listed is None or needs_list(self.policy):
            return None, ()
        if not source_set(graph, self.listed).labels:
            return None, (f"list: none of its {len(self.listed):,} names is in the ledger",)
        if is_ordered(self.policy):
            held = parcels(graph, order=self.policy, listed=self.listed)  # type: ignore[arg-type]
            found = score_in_order(held, rows)
            return found, found.notes
        chain = absorbing_chain(
            graph, policy=self.policy, links=self.settings.get("links"), listed=self.listed
        )
        budget = self.asking.budget
        found = reached(lambda: score_exactly(chain, rows, width=EXACT_WIDTH, budget=budget))
        notes = [note for note in found.notes if note != found.shortfall]
        if found.shortfall is not None:
            notes.append(f"exposure: {found.shortfall}")
        return found, tuple(notes)


def _mean_interval(scores: Scores) -> dict[str, float] | None:
    """Give the interval of the mean of drawn bits; None where rows have proven ones."""
    if scores.bits_mean_low is None or scores.bits_mean_high is None or scores.mean_miss is None:
        return None
    return {
        "low": scores.bits_mean_low,
        "high": scores.bits_mean_high,
        "miss": scores.mean_miss,
    }

"""One whole history being served: how it stands, opened on request, and again after each commit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from coinhaze.errors import CoinhazeError
from coinhaze.explore.models import LedgerCard, Standing, Window
from coinhaze.history import History, files
from coinhaze.history.journal import last_block
from coinhaze.observer.policies import PROPORTIONAL
from coinhaze.solve.progress import Progress
from coinhaze.web.ledger_state import Entry


@dataclass(frozen=True, eq=False)
class OpenHistory:
    """A history that is open, with the digest of its card."""

    history: History
    digest: str


class HistoryEntry(Entry):
    """A history that is served. What follows its chain may commit at any time: it is seen here."""

    def _look(self) -> LedgerCard:
        try:
            history = History.open(self.paths[0])
        except CoinhazeError as error:
            return self._missing() if not self.paths[0].exists() else self._refused(error)
        about = history.manifest
        tip = last_block(history.path) if about.names == "hash" else None
        if tip is not None and tip.height < about.last_height:
            tip = None
        last = about.last_height if about.last_height >= 0 else None
        standing = Standing(
            scored_to=last,
            at=last if tip is None else tip.height,
            hash=None if tip is None else tip.hash,
            time=None if tip is None else int(tip.content.times[0]),
        )
        facts: dict[str, Any] = {
            "kind": "accounts" if about.accounts else "coins",
            "unit": history.unit.symbol or None,
            "decimals": history.unit.decimals,
            "standing": standing,
            "window": Window(
                first_height=about.first_height if about.first_height >= 0 else None,
                last_height=last,
                first_time=_first_time(history),
                last_time=about.last_time if about.last_time >= 0 else None,
            ),
            "coins": about.coins,
            "policies": (PROPORTIONAL.column,),
            "views": ("account",) if about.accounts else ("coin",),
            "times": ("temporal",),
        }
        if about.scores is None:
            return LedgerCard(
                id=self.id, name=self.name, state="not scored", **facts,
                message=f"{self.name} is not scored, or has grown since",
                fix=f"score it now, or run: coinhaze history score {self.name} --over-time",
            )  # fmt: skip
        stamp = f"{about.text()}{standing.at}{standing.hash}"
        digest = hashlib.sha256(stamp.encode()).hexdigest()[:32]
        return LedgerCard(id=self.id, name=self.name, state="ready", digest=digest, **facts)

    def open(self) -> Any:
        """Give the open history, None where it cannot be: its card then says why."""
        with self._lock:
            card = self._look()
            if card.state != "ready" or card.digest is None:
                return None
            opened: Any = self._cached
            if opened is None or opened.digest != card.digest:
                opened = OpenHistory(History.open(self.paths[0]), card.digest)
                self._cached = opened
            return opened

    def prepare(self, progress: Progress) -> None:
        """Score the history, with what was unspent each month; it is the one writer meanwhile."""
        progress(0.0)
        history = History.open(self.paths[0])
        if history.manifest.scores is None:
            known = bool(history.manifest.first_height >= 0 and history.manifest.last_time >= 0)
            history.score(over_time=known, progress=progress)
        with self._lock:
            self._seen = None
        progress(1.0)


def _first_time(history: History) -> int | None:
    if not history.manifest.pieces:
        return None
    blocks = history.tape.table(history.manifest.pieces[0], "blocks")
    times = files.column(blocks, "time")
    return int(times[0]) if len(times) and times[0] >= 0 else None

"""What a comparison compares: ledgers to read or weeks to make up, each with a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger import AccountLedger, Ledger, read
from coinhaze.ledger.readers.knowledge import read_history
from coinhaze.report.provenance import input_digests
from coinhaze.simulate.weeks import WEEKS, check_week, simulate_week
from coinhaze.solve.source import READ_SETTINGS, opening_before

WEEK = "week:"


@dataclass(frozen=True)
class Week:
    """A week to make up."""

    name: str
    size: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_week(self.name, self.size, self.seed)


@dataclass(frozen=True)
class Compared:
    """One ledger of a comparison: files, a folder or a store, or a made-up week.

    `history` is a file with what entered its pools before. A made-up week of Zcash has its own.
    """

    name: str
    source: tuple[Path, ...] | Week
    history: Path | None = None

    @classmethod
    def of(cls, text: str, *, size: float = 1.0, seed: int = 1) -> Compared:
        """Understand LEDGER or NAME=LEDGER; `week:dai` is a made-up week.

        >>> Compared.of("token=week:dai", size=0.1)
        Compared(name='token', source=Week(name='dai-week', size=0.1, seed=1), history=None)
        """
        name, equals, place = text.partition("=")
        if not equals or Path(text).exists():
            name, place = "", text
        if not place or (equals and not name and not Path(text).exists()):
            raise UsageError(f"{text!r}: write LEDGER or NAME=LEDGER")
        if place.startswith(WEEK):
            week = place.removeprefix(WEEK).removesuffix("-week") + "-week"
            return cls(name or week, Week(week, size, seed))
        path = Path(place)
        if not path.exists():
            raise InputError(f"{place}: no such file or folder; made-up weeks are {WEEK}NAME")
        return cls(name or _stem(path), (path,))

    @property
    def slug(self) -> str:
        """The name as part of a file's name."""
        return re.sub(r"[^\w.-]+", "-", self.name, flags=re.ASCII).strip("-.") or "ledger"

    def made_of(self) -> dict[str, Any]:
        """Say what it is made of: files with their digests, or a week with its seed."""
        files = [] if self.history is None else [self.history]
        if isinstance(self.source, Week):
            w = self.source
            week = {"week": w.name, "size": w.size, "seed": w.seed}
            return {"simulated": week, "inputs": input_digests(files)}
        return {"simulated": None, "inputs": input_digests([*self.source, *files])}

    def ledger(self, settings: Mapping[str, Any]) -> tuple[Ledger, dict[str, Any]]:
        """Read it, or make it up; also give the settings that are left for its graph."""
        given = dict(settings)
        if not isinstance(self.source, Week):
            # A window of a store opens with what the store tells of the time before it.
            given = opening_before(list(self.source), given)
        reading = {k: given.pop(k) for k in list(given) if k in READ_SETTINGS}
        if not isinstance(self.source, Week):
            return read(list(self.source), **reading), given
        week = self.source
        return simulate_week(week.name, size=week.size, seed=week.seed), given

    def pool_history(self, ledger: Ledger) -> Mapping[str, Sequence[int]] | None:
        """Give what entered its pools before, where that is known."""
        if self.history is not None:
            return read_history(str(self.history))
        if not isinstance(self.source, Week) or self.source.name != "zcash-week":
            return None
        from coinhaze.simulate.zcash import zcash_history

        entered = zcash_history(size=self.source.size, seed=self.source.seed)
        # A small week may leave a pool alone.
        seen = ledger.facts()["pools"]
        assert isinstance(seen, list)
        return {pool: values for pool, values in entered.items() if pool in seen} or None


def compared_of(texts: Sequence[str], *, size: float = 1.0, seed: int = 1) -> list[Compared]:
    """Understand LEDGER or NAME=LEDGER, several times; files of one NAME are one ledger.

    >>> [one.name for one in compared_of(["week:dai", "other=week:dai"])]
    ['dai-week', 'other']
    """
    found: list[Compared] = []
    last = ""
    for text in texts:
        one = Compared.of(text, size=size, seed=seed)
        named = text.startswith(f"{one.name}=") and not Path(text).exists()
        before = found[-1] if found and named and one.name == last else None
        if before is None or isinstance(before.source, Week) or isinstance(one.source, Week):
            found.append(one)
        else:
            found[-1] = replace(before, source=before.source + one.source)
        last = one.name if named else ""
    return found


def all_weeks(*, size: float = 1.0, seed: int = 1) -> list[Compared]:
    """Give the paper's five weeks, made up."""
    order = ("bitcoin-week", "zcash-week", "ethereum-week", "dai-week", "usdc-week")
    assert set(order) == set(WEEKS)
    return [Compared(name, Week(name, size, seed)) for name in order]


def check_names(compared: Sequence[Compared]) -> None:
    """Refuse ledgers that nobody could tell apart."""
    seen: dict[str, str] = {}
    for one in compared:
        slug = one.slug.lower()
        if slug in seen:
            raise UsageError(
                f"two ledgers are called {seen[slug]!r} and {one.name!r}: name one of them "
                "otherwise, as NAME=LEDGER"
            )
        seen[slug] = one.name


@dataclass(frozen=True)
class Reading:
    """One way to look at a ledger: how time is read, and the graph's settings for that."""

    time: str
    settings: Mapping[str, str] = field(default_factory=dict)


def readings_of(ledger: Ledger) -> list[Reading]:
    """Say how a ledger can be looked at.

    The paper's stationary graph of coins merges an address's coins, its temporal one is that of
    coins. Where amounts are hidden, or nobody tells who owned a coin, there are no addresses.
    """
    if isinstance(ledger, AccountLedger):
        return [Reading(time, {"time": time}) for time in ("stationary", "temporal")]
    coins = Reading("temporal", {"view": "coin"})
    if ledger.output_value is None or ledger.has_unknown or len(ledger.ring_tx):
        return [coins]
    return [Reading("stationary", {"view": "address", "time": "stationary"}), coins]


def _stem(path: Path) -> str:
    name = path.resolve().name
    return name if path.is_dir() else name.partition(".")[0] or name

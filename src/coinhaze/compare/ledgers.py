"""The ledgers of a comparison: files to read or weeks to simulate, and how each is scored."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from coinhaze import __version__
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.formats.lists.knowledge import read_history
from coinhaze.ledger import AccountLedger, Ledger
from coinhaze.observer.policies import is_ordered, needs_list
from coinhaze.readers import read
from coinhaze.report.files import input_digests
from coinhaze.simulate.weeks import WEEKS, check_week, simulate_week
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.mean import MEAN_ERROR
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.source import READ_SETTINGS, opening_before, option_files, read_options

WEEK = "week:"
WALKS = 10_000
# The paper's conventions for graphs; how they are solved is a separate matter.
CONVENTIONS: dict[str, dict[str, Any]] = {
    "ours": {},
    "paper": {"mint": "one", "top_up": True, "sinks": "paper"},
}


@dataclass(frozen=True)
class Week:
    """A week to simulate."""

    name: str
    size: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_week(self.name, self.size, self.seed)


@dataclass(frozen=True)
class ComparedLedger:
    """One ledger of a comparison: files, a folder or a store, or a simulated week.

    `history` is a file with what entered its pools before. A simulated week of Zcash has its own.
    `settings` are its own: options of `coinhaze score` as written on the command line, such as
    `{"unknown": "leave-out"}`, files by their path. They take precedence over those of the
    comparison.
    """

    name: str
    source: tuple[Path, ...] | Week
    history: Path | None = None
    settings: Mapping[str, str | bool] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, *, size: float = 1.0, seed: int = 1) -> ComparedLedger:
        """Parse LEDGER or NAME=LEDGER; `week:dai` is a simulated week.

        >>> ComparedLedger.of("token=week:dai", size=0.1)
        ComparedLedger(name='token', source=Week(name='dai-week', size=0.1, seed=1), history=None, \
settings={})
        """
        name, equals, place = text.partition("=")
        if not equals or Path(text).exists():
            name, place = "", text
        if not place or (equals and not name and not Path(text).exists()):
            raise UsageError(f"{text!r}: write LEDGER or NAME=LEDGER")
        week = week_of(place, size, seed)
        if week is not None:
            return cls(name or week.name, week)
        path = Path(place)
        if not path.exists():
            raise InputError(f"{place}: no such file or folder; made-up weeks are {WEEK}NAME")
        return cls(name or _stem(path), (path,))

    @property
    def slug(self) -> str:
        """The name as part of a file name."""
        return re.sub(r"[^\w.-]+", "-", self.name, flags=re.ASCII).strip("-.") or "ledger"

    def made_of(self) -> dict[str, Any]:
        """Return its inputs: files with their digests, or a week with its seed."""
        week, files = None, [] if self.history is None else [self.history]
        if isinstance(self.source, Week):
            w = self.source
            week = {"week": w.name, "size": w.size, "seed": w.seed}
        else:
            files = [*self.source, *files]
        named = list(option_files(self.settings).values())
        return {
            "simulated": week,
            "inputs": input_digests(files),
            "settings_files": input_digests(named),
        }

    def ledger(self, settings: Mapping[str, Any]) -> tuple[Ledger, dict[str, Any]]:
        """Read or simulate it; also return the settings that remain for graph and chain."""
        given = dict(settings) | read_options(self.settings)
        if not isinstance(self.source, Week):
            # A window of a store opens with what the store contains from before it.
            given = dict(opening_before(list(self.source), given))
        reading = {k: given.pop(k) for k in list(given) if k in READ_SETTINGS}
        if not isinstance(self.source, Week):
            return read(list(self.source), **reading), given
        week = self.source
        return simulate_week(week.name, size=week.size, seed=week.seed), given

    def pool_history(self, ledger: Ledger) -> Mapping[str, Sequence[int]] | None:
        """Return what entered its pools before, where that is known."""
        if self.history is not None:
            return read_history(str(self.history))
        if not isinstance(self.source, Week) or self.source.name != "zcash-week":
            return None
        from coinhaze.simulate.weeks.zcash import zcash_history

        entered = zcash_history(size=self.source.size, seed=self.source.seed)
        # A small week may not use every pool.
        seen = ledger.facts()["pools"]
        assert isinstance(seen, list)
        return {pool: values for pool, values in entered.items() if pool in seen} or None


def week_of(place: str, size: float = 1.0, seed: int = 1) -> Week | None:
    """Return the simulated week that `week:NAME` stands for; None for anything else.

    >>> week_of("week:dai").name, week_of("transfers.csv")
    ('dai-week', None)
    """
    if not place.startswith(WEEK):
        return None
    return Week(place.removeprefix(WEEK).removesuffix("-week") + "-week", size, seed)


def compared_of(texts: Sequence[str], *, size: float = 1.0, seed: int = 1) -> list[ComparedLedger]:
    """Parse several LEDGER or NAME=LEDGER; files with the same NAME are one ledger.

    >>> [one.name for one in compared_of(["week:dai", "other=week:dai"])]
    ['dai-week', 'other']
    """
    found: list[ComparedLedger] = []
    last = ""
    for text in texts:
        one = ComparedLedger.of(text, size=size, seed=seed)
        named = text.startswith(f"{one.name}=") and not Path(text).exists()
        before = found[-1] if found and named and one.name == last else None
        if before is None or isinstance(before.source, Week) or isinstance(one.source, Week):
            found.append(one)
        else:
            found[-1] = replace(before, source=before.source + one.source)
        last = one.name if named else ""
    return found


def all_weeks(*, size: float = 1.0, seed: int = 1) -> list[ComparedLedger]:
    """Return the paper's five weeks, simulated."""
    order = ("bitcoin-week", "zcash-week", "ethereum-week", "dai-week", "usdc-week")
    assert set(order) == set(WEEKS)
    return [ComparedLedger(name, Week(name, size, seed)) for name in order]


def check_names(compared: Sequence[ComparedLedger]) -> None:
    """Raise an error for ledgers whose names are not distinct."""
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
    """One reading of a ledger: its treatment of time, and the graph's settings for that."""

    time: str
    settings: Mapping[str, str] = field(default_factory=dict)


def readings_of(
    ledger: Ledger, *, view: str | None = None, time: str | None = None, policy: str | None = None
) -> list[Reading]:
    """Return the readings of a ledger; a view, a time or an ordered policy restricts them.

    The paper's stationary graph of coins merges an address's coins; its temporal one is the graph
    of coins. Where amounts are hidden, or owners of coins are unknown, there are no addresses.
    """
    found = _all_readings(ledger, view)
    if is_ordered(policy):
        found = [reading for reading in found if reading.settings != STATIONARY | ADDRESS]
        found = [reading for reading in found if reading.settings != STATIONARY]
    found = [reading for reading in found if time in (None, reading.time)]
    if not found:
        named = {"view": view, "time": time, "policy": policy}
        words = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        raise UsageError(f"{words}: there is no such graph of this ledger")
    return found


STATIONARY, TEMPORAL = {"time": "stationary"}, {"time": "temporal"}
COIN, ADDRESS = {"view": "coin"}, {"view": "address"}


def _all_readings(ledger: Ledger, view: str | None) -> list[Reading]:
    accounts = isinstance(ledger, AccountLedger)
    if view not in ((None, "account") if accounts else (None, "coin", "address")):
        raise UsageError(
            f"view {view!r} does not fit this ledger: it is one of "
            f"{'accounts' if accounts else 'coins'}"
        )
    if isinstance(ledger, AccountLedger):
        return [Reading("stationary", STATIONARY), Reading("temporal", TEMPORAL)]
    if view == "address":
        both = (("stationary", STATIONARY), ("temporal", TEMPORAL))
        return [Reading(time, ADDRESS | settings) for time, settings in both]
    coins = Reading("temporal", COIN)
    hidden = ledger.output_value is None or ledger.has_unknown or len(ledger.ring_tx)
    if view == "coin" or hidden:
        return [coins]
    return [Reading("stationary", ADDRESS | STATIONARY), coins]


def _stem(path: Path) -> str:
    name = path.resolve().name
    return name if path.is_dir() else name.partition(".")[0] or name


@dataclass(frozen=True)
class ScoringSettings:
    """How every ledger of a comparison is scored, unless its own settings say otherwise."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    listed: Path | None = None
    mean_error: float = MEAN_ERROR
    seconds: float = thresholds.MAX_MEAN_SECONDS
    seed: int = 0
    walks: int = WALKS  # forward from sources, for the appendix's experiment; 0 for none
    budget: Budget = UNLIMITED
    strict: bool = False  # raise an error for a ledger that fails a completeness check

    def key(self, one: ComparedLedger) -> dict[str, Any]:
        """Return everything on which the scores of a ledger depend."""
        return {
            "software": f"coinhaze {__version__}",
            "made_of": one.made_of(),
            "settings": dict(self.settings) | dict(one.settings),
            "listed": None if self.listed is None else input_digests([self.listed]),
            "mean_error": self.mean_error,
            "seconds": self.seconds,
            "seed": self.seed,
            "walks": self.walks,
        }


def command_of(one: ComparedLedger, asking: ScoringSettings) -> str:
    """Return the command that scores one ledger alone, without the folder it writes to.

    It is the same however the ledger came into a comparison, so that its score file is.

    >>> command_of(ComparedLedger.of("week:dai", size=0.1), ScoringSettings())
    'coinhaze compare dai-week=week:dai-week --size 0.1 --seed 1'
    """
    if isinstance(one.source, Week):
        week = one.source
        words = [f"{one.name}={WEEK}{week.name}", "--size", f"{week.size:g}"]
        words += ["--seed", str(week.seed)]
    else:
        words = [f"{one.name}={path}" for path in one.source]
    given: dict[str, Any] = {} if asking.listed is None else {"listed": str(asking.listed)}
    for name, value in (given | dict(one.settings)).items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    if one.history is not None:
        words += ["--pool-history", f"{one.name}={one.history}"]
    plain = ScoringSettings()
    for name, spelling in (("mean_error", "accuracy"), ("seconds", "seconds"), ("walks", "walks")):
        if getattr(asking, name) != getattr(plain, name):
            words += [f"--{spelling}", f"{getattr(asking, name):g}"]
    words += ["--preset", "paper"] if asking.settings == CONVENTIONS["paper"] else []
    return shlex.join(["coinhaze", "compare", *words])


def problems_of(one: ComparedLedger, *, listed: bool = False) -> list[str]:
    """Return the problems with a ledger's settings that can be found before it is read.

    `listed`: the comparison has a list.

    >>> problems_of(ComparedLedger("a", (), settings={"view": "coin", "time": "temporal"}))
    ['view=coin has its own time: leave time out, or take view=address']
    """
    found = [*_missing_files(one), *_contradictions(one, listed=listed)]
    if not found:
        try:
            read_options(one.settings)
        except CoinhazeError as error:
            found.append(str(error))
    return found


def _missing_files(one: ComparedLedger) -> list[str]:
    named = dict(option_files(one.settings))
    if one.history is not None:
        named["history"] = str(one.history)
    return [
        f"{name}: {path}: no such file" for name, path in named.items() if not Path(path).is_file()
    ]


def _contradictions(one: ComparedLedger, *, listed: bool) -> list[str]:
    given = {**one.settings, "history": one.history}
    view, policy = given.get("view"), given.get("policy")
    rules = (
        (
            view == "coin" and given.get("time"),
            "view=coin has its own time: leave time out, or take view=address",
        ),
        (view == "coin" and given.get("clusters"), "clusters merge addresses: use view=address"),
        (
            view == "account" and given.get("opening") == "observed",
            "opening=observed needs coins: accounts show no earlier coins",
        ),
        (
            needs_list(policy) and not (listed or given.get("listed")),
            f"policy={policy} needs a list: name the tainted nodes in a file with listed",
        ),
        (
            needs_list(policy) and given.get("links"),
            f"links have no meaning under policy={policy}, which ignores amounts",
        ),
        (
            needs_list(policy) and given.get("history"),
            f"history changes bits over all sources, and policy={policy} has none but the list",
        ),
        *(
            (
                is_ordered(policy) and given.get(name),
                f"{name} has no meaning under policy={policy}, which is no walk",
            )
            for name in ("links", "history")
        ),
        (
            is_ordered(policy) and (view == "address" or given.get("time") == "stationary"),
            f"policy={policy} follows payments in order: coins, or accounts with time=temporal",
        ),
    )
    return [words for wrong, words in rules if wrong]

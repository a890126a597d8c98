"""How the ledgers of a comparison are read and scored: common settings, and each ledger's own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coinhaze import __version__
from coinhaze.compare.ledgers import WEEK, ComparedLedger, Week
from coinhaze.errors import CoinhazeError
from coinhaze.observer.policies import is_ordered, needs_list
from coinhaze.report.files import input_digests
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.mean import MEAN_ERROR
from coinhaze.solve.pool.limits import UNLIMITED, Budget
from coinhaze.solve.source import option_files, read_options

WALKS = 10_000
# The paper's conventions for graphs; how they are solved is a separate matter.
CONVENTIONS: dict[str, dict[str, Any]] = {
    "ours": {},
    "paper": {"mint": "one", "top_up": True, "sinks": "paper"},
}


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

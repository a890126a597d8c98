"""The registry of comparators: other people's measures of the same coins, by name.

The modules of this package add them. The command line, the Python functions, the
experiments and the page take their choices from here when they are used, so that a comparator
registered with `register_comparator` is known to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from coinhaze.errors import UsageError
from coinhaze.registry import Registry

if TYPE_CHECKING:
    from coinhaze.amounts import Floats
    from coinhaze.measures.comparators.side_by_side import ComparedScores

# owners: a table of whose addresses are whose; rings: a ledger whose inputs are rings.
Need = Literal["owners", "rings"]
# What a value is about: the coin's own distribution over sources, the transaction that made the
# coin, which can be taken by itself, or whatever else the whole ledger tells of the coin.
About = Literal["sources", "transaction", "ledger"]
Measure = TypeVar("Measure", bound=Callable[..., Any])


@dataclass(frozen=True)
class Comparator:
    """A measure: its name, what it says in one line, its unit, and how it is computed."""

    name: str
    words: str
    measure: Callable[[ComparedScores], Floats]
    unit: str = ""
    about: About = "ledger"
    needs: frozenset[Need] = frozenset()
    no_answer: str = ""  # why it may have no answer, where that is its own
    aliases: tuple[str, ...] = ()


COMPARATORS: Registry[Comparator] = Registry("measure", package=__package__)


def register_comparator(
    name: str,
    *,
    words: str,
    unit: str = "",
    about: About = "ledger",
    needs: Collection[Need] = (),
) -> Callable[[Measure], Measure]:
    """Register a function as a comparator, known by name to every command, function and page.

    The function takes a `ComparedScores` and returns a number for every row of its scores, NaN
    where it has no answer. `words` says in one line what the number is. Name what it `needs`:
    "owners", or "rings" if it is about ring signatures. `about="transaction"` means that the
    transaction that made a coin is all it depends on.

    >>> import numpy as np
    >>> import coinhaze
    >>> @coinhaze.register_comparator("name-length", words="letters of the node's name")
    ... def name_length(compared):
    ...     return np.array([float(len(score.node)) for score in compared.scores])
    >>> scores = coinhaze.score(coinhaze.AccountLedger.from_transfers([("a", "bob", 1)]))
    >>> coinhaze.compare_measures(scores, ["name-length"]).comparators["name-length"]
    array([3.])
    >>> COMPARATORS.remove("name-length")
    """
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"a measure's name is letters, digits, - and _, not {name!r}")

    def register(function: Measure) -> Measure:
        COMPARATORS.add(Comparator(name, words, function, unit, about, frozenset(needs)))
        return function

    return register


def check_measures(names: Sequence[str], *, owners: bool) -> None:
    """Refuse, before any work is done, measures that are not known or lack what they need."""
    for name in names:
        if name not in COMPARATORS:
            raise UsageError(f"no measure {name!r}: one of {', '.join(COMPARATORS.names())}")
        if "owners" in COMPARATORS[name].needs and not owners:
            raise UsageError(
                f"{name} is what a wallet knows of itself: name a table of owners, address to "
                "wallet"
            )

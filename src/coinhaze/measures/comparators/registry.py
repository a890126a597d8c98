"""The registry of comparators: other people's measures of the same coins, by name.

The modules beside it compute them, and are imported when one is used. The command line,
the Python functions, the experiments and the page take their choices from here when they are used,
so that a comparator registered with `register_comparator` is known to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from coinhaze.errors import UsageError
from coinhaze.registry import Registry

if TYPE_CHECKING:
    from coinhaze.amounts import Floats
    from coinhaze.measures.comparators.side_by_side import ComparedScores

# owners: a table of whose addresses are whose; rings: a ledger whose inputs are rings; count: the
# number of possible sources of each coin, counted.
Need = Literal["owners", "rings", "count"]
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


COMPARATORS: Registry[Comparator] = Registry("measure", by_name=True)


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
    "owners", "rings" if it is about ring signatures, or "count" if it uses the number of possible
    sources. `about="transaction"` means that the
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


def _function(module: str, name: str) -> Callable[[ComparedScores], Floats]:
    """Give a function of a module of this package, which is imported when it is called."""

    def measure(compared: ComparedScores) -> Floats:
        found: Floats = getattr(import_module(f"{__package__}.{module}"), name)(compared)
        return found

    return measure


BOLTZMANN = COMPARATORS.add(
    Comparator(
        "boltzmann",
        "log2 of the interpretations of the transaction that made the coin",
        lambda compared: compared.by_transaction(lambda matrix: matrix.bits),
        unit="bits",
        about="transaction",
    )
)
DEGREE = COMPARATORS.add(
    Comparator(
        "degree",
        "bits as a share of what as many equally likely sources would have",
        lambda compared: compared.scores.degree,
        unit="of 1",
        about="sources",
        needs=frozenset({"count"}),
    )
)
EFFECTIVE_SOURCES = COMPARATORS.add(
    Comparator(
        "effective-sources",
        "equally likely sources that would be as uncertain: 2^bits",
        lambda compared: compared.scores.effective_sources,
        unit="origins",
        about="sources",
    )
)
EFFICIENCY = COMPARATORS.add(
    Comparator(
        "efficiency",
        "interpretations of the transaction as a share of the closest perfect CoinJoin's",
        lambda compared: compared.by_transaction(lambda matrix: matrix.efficiency),
        unit="of 1",
        about="transaction",
    )
)
K_ANONYMITY = COMPARATORS.add(
    Comparator(
        "k-anonymity",
        "outputs of the transaction with the coin's value, itself among them",
        _function("transaction", "equal_outputs"),
        unit="outputs",
        about="transaction",
    )
)
LINK_BITS = COMPARATORS.add(
    Comparator(
        "link-bits",
        "bits of the coin's shares over the inputs of its transaction",
        _function("transaction", "link_bits"),
        unit="bits",
        about="transaction",
    )
)
MATCHING = COMPARATORS.add(
    Comparator(
        "matching",
        "coins that the transaction's rings can have spent, every coin spent once",
        _function("rings", "spendable_members"),
        unit="coins",
        needs=frozenset({"rings"}),
    )
)
MINT_CENTRALITY = COMPARATORS.add(
    Comparator(
        "mint-centrality",
        "coinbases the coin can be traced back to",
        _function("sources", "mints_behind"),
        unit="coinbases",
        about="sources",
    )
)
POSSIBLE_SOURCES = COMPARATORS.add(
    Comparator(
        "possible-sources",
        "sources the coin can come from: k-anonymity over the whole graph",
        lambda compared: compared.scores.sources,
        unit="origins",
        about="sources",
        needs=frozenset({"count"}),
    )
)
SYSTEM_ANONYMITY = COMPARATORS.add(
    Comparator(
        "system-anonymity",
        "of matching a transaction's inputs and outputs one to one, how much is left open",
        _function("system_anonymity", "transaction_anonymity"),
        unit="of 1",
        about="transaction",
        no_answer="its transaction has not as many inputs as outputs, or too many",
    )
)
WASABI = COMPARATORS.add(
    Comparator(
        "wasabi",
        "the score the coin's own wallet would give it",
        _function("wasabi", "own_scores"),
        needs=frozenset({"owners"}),
    )
)

"""The registry of policies: how an observer splits a node's money over where it came from.

A policy is named here and nowhere else. The command line, the Python functions, the cache, the page
and its HTTP schema take their choices from here when they are used, so that a policy registered
with `register_policy` is known to all of them. Nothing heavy is imported before a policy is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from coinhaze.errors import UsageError
from coinhaze.registry import Registry

if TYPE_CHECKING:
    from coinhaze.amounts import Bools, Ints
    from coinhaze.graph import TransactionGraph
    from coinhaze.observer.chain import AbsorbingChain, Walk

# walk: an absorbing chain; lots: money in order of arrival; trace: listed money followed forward.
Kind = Literal["walk", "lots", "trace"]
# amounts: the ledger shows amounts; list: names to trace money from; order: payments in time
# order; coins: a ledger of coins without pools.
Need = Literal["amounts", "list", "order", "coins"]
Order = Literal["fifo", "lifo"]
FIRST_IN: Order = "fifo"

MakeWalk = Callable[["TransactionGraph", "Bools | None"], "tuple[Walk, Bools | None]"]
Weigh = Callable[["AbsorbingChain", "Ints"], "list[int]"]
UserPolicy = TypeVar("UserPolicy", bound=Callable[..., Any])


@dataclass(frozen=True)
class Policy:
    """One policy: what it is called, what it needs, how it is described and how it is computed."""

    name: str
    label: str  # on the page
    words: str  # what an observer who believes in it does: help, page and docs
    split: str  # how shares are split, as a clause
    kind: Kind = "walk"
    needs: frozenset[Need] = frozenset()
    column: str = ""  # its name in tables of taint and on the page, where that differs
    meaning: str = ""  # what an amount of listed money under it means, for a screening statement
    premise: str = ""  # what it takes a payment to be made of, for a wallet's report
    walk: MakeWalk | None = None  # the walk, and the nodes that no listed money reached
    weigh: Weigh | None = None  # integer weights of unspent coins that are spent together
    shares: bool = True  # False: it says whether listed money touched a node, not how much
    conserves: bool = False  # whether money is conserved by its walk: x^T B = b
    newest_first: bool = False  # of lots
    taints: bool = False  # whether `taint` and `screen` follow listed money by it

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", self.column or self.name)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The other spelling it is known by."""
        return () if self.column == self.name else (self.column,)

    @property
    def needs_list(self) -> bool:
        """Whether it has no meaning without a list."""
        return "list" in self.needs

    @property
    def ordered(self) -> bool:
        """Whether lots are followed in order, which is no walk."""
        return self.kind == "lots"

    @property
    def takes_links(self) -> bool:
        """Whether links can change it: a walk over all sources."""
        return self.kind == "walk" and not self.needs_list


POLICIES: Registry[Policy] = Registry("policy")


def register_policy(
    name: str,
    *,
    words: str,
    label: str | None = None,
    split: str | None = None,
    needs: Collection[Need] = (),
    weigh: Weigh | None = None,
) -> Callable[[UserPolicy], UserPolicy]:
    """Register a function as a policy, known by name to every command, function and page.

    The function takes a `TransactionGraph` of n nodes and returns a matrix of n rows and n + 1
    columns, dense or sparse: row i has the probabilities that the money of node i came from each
    node and, last, that it was there from the beginning. `words` says what an observer who
    believes in it does, such as "takes all money to come from the largest input". Name what it
    `needs`: "amounts" if it has no meaning where amounts are hidden. `weigh` gives unspent coins
    their integer weights when they are spent together, which wallets do.

    >>> import numpy as np
    >>> import coinhaze
    >>> @coinhaze.register_policy("opaque", words="believes that every coin is its own origin")
    ... def opaque(graph):
    ...     return np.hstack([np.zeros((len(graph), len(graph))), np.ones((len(graph), 1))])
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    >>> coinhaze.score(ledger, policy="opaque").bits
    array([0.])
    >>> POLICIES.remove("opaque")
    """
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"a policy's name is letters, digits, - and _, not {name!r}")

    def register(function: UserPolicy) -> UserPolicy:
        def walk(graph: TransactionGraph, listed: Bools | None) -> tuple[Walk, Bools | None]:
            from coinhaze.observer.walks import custom

            return custom(graph, function), None

        POLICIES.add(
            Policy(
                name=name,
                label=label or name.capitalize(),
                words=words,
                split=split or "split by a rule of your own",
                needs=frozenset(needs),
                premise=f"The rule {name} {words}.",
                walk=walk,
                weigh=weigh,
            )
        )
        return function

    return register


def default_policy(*, hides_amounts: bool) -> Policy:
    """Give the policy that is used where none is chosen."""
    return UNIFORM if hides_amounts else PROPORTIONAL


def score_policies(*, hides_amounts: bool = False) -> tuple[Policy, ...]:
    """List the policies that give bits, the default first.

    >>> [policy.name for policy in score_policies(hides_amounts=True)]
    ['uniform', 'poison']
    """
    scoring = (policy for policy in POLICIES if policy.kind != "trace")
    return tuple(p for p in scoring if not (hides_amounts and "amounts" in p.needs))


def ordered_policies() -> tuple[Policy, ...]:
    """List the policies that follow lots in order."""
    return tuple(policy for policy in POLICIES if policy.ordered)


def taint_policies() -> tuple[Policy, ...]:
    """List the policies that `taint` and `screen` follow listed money by."""
    return tuple(policy for policy in POLICIES if policy.taints)


def weighing_policies() -> tuple[Policy, ...]:
    """List the policies that say how coins spent together mix, over all sources."""
    return tuple(p for p in POLICIES if p.weigh is not None and not p.needs_list)


def is_ordered(policy: object) -> bool:
    """Tell whether a policy as users give it is an ordered one."""
    found = POLICIES.get(policy)
    return found is not None and found.ordered


def needs_list(policy: object) -> bool:
    """Tell whether a policy as users give it has no meaning without a list."""
    found = POLICIES.get(policy)
    return found is not None and found.needs_list


def _proportional(graph: TransactionGraph, listed: Bools | None) -> tuple[Walk, Bools | None]:
    from coinhaze.observer.walks import proportional

    return proportional(graph), None


def _uniform(graph: TransactionGraph, listed: Bools | None) -> tuple[Walk, Bools | None]:
    from coinhaze.observer.walks import uniform

    return uniform(graph), None


def _poison(graph: TransactionGraph, listed: Bools | None) -> tuple[Walk, Bools | None]:
    from coinhaze.observer.walks import poison

    assert listed is not None
    return poison(graph, listed)


def _by_value(chain: AbsorbingChain, nodes: Ints) -> list[int]:
    assert chain.graph.closing is not None
    return chain.graph.closing.take(nodes).ints()


def _equally(chain: AbsorbingChain, nodes: Ints) -> list[int]:
    return [1] * len(nodes)


def _tainted_equally(chain: AbsorbingChain, nodes: Ints) -> list[int]:
    assert chain.clean is not None
    tainted = ~chain.clean[nodes]
    return [int(t) for t in (tainted if tainted.any() else ~tainted)]


PROPORTIONAL = POLICIES.add(
    Policy(
        name="proportional",
        column="haircut",
        label="Haircut",
        words="splits value in proportion",
        split="split in proportion",
        meaning="money mixes: whatever leaves a balance carries listed money in the share the "
        "balance held. The amounts are expectations and need not be whole.",
        premise="A payment is taken to be made of its coins by value (the haircut rule). That is "
        "a convention: no ledger says which satoshi went where.",
        needs=frozenset({"amounts"}),
        walk=_proportional,
        weigh=_by_value,
        conserves=True,
        taints=True,
    )
)
UNIFORM = POLICIES.add(
    Policy(
        name="uniform",
        label="Uniform",
        words="counts every input equally",
        split="every input counted equally",
        premise="A payment is taken to come from any of its coins with equal probability.",
        walk=_uniform,
        weigh=_equally,
    )
)
POISON = POLICIES.add(
    Policy(
        name="poison",
        label="Poison",
        words="marks everything downstream of a listed address",
        split="touched or not",
        meaning="one listed unit marks a whole balance, and everything paid from it: the most "
        "that anybody could call listed. Amounts are counted again and again, so they do not add "
        "up.",
        needs=frozenset({"list"}),
        walk=_poison,
        weigh=_tainted_equally,
        shares=False,
        taints=True,
    )
)
FIFO = POLICIES.add(
    Policy(
        name="fifo",
        label="FIFO",
        kind="lots",
        words="takes the oldest value as spent first",
        split="oldest value spent first",
        meaning="money leaves in the order it came: first in, first out. No unit is counted twice.",
        needs=frozenset({"amounts", "order"}),
        taints=True,
    )
)
LIFO = POLICIES.add(
    Policy(
        name="lifo",
        label="LIFO",
        kind="lots",
        words="takes the newest value as spent first",
        split="newest value spent first",
        meaning="money leaves in the opposite order: last in, first out. No unit is counted twice.",
        needs=frozenset({"amounts", "order"}),
        newest_first=True,
        taints=True,
    )
)
TIHO = POLICIES.add(
    Policy(
        name="tiho",
        label="TIHO",
        kind="trace",
        words="sends listed value to the largest outputs first",
        split="listed value to the largest outputs",
        meaning="listed money goes to the largest outputs of a transaction first. No unit is "
        "counted twice.",
        needs=frozenset({"amounts", "list", "order", "coins"}),
        taints=True,
    )
)

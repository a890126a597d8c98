"""How the money is followed: rule, nodes, time, list; each choice is a link to share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from coinhaze.explore.describe import TIMES, VIEWS
from coinhaze.explore.models import LedgerCard, ListCard
from coinhaze.explore.query import Settings
from coinhaze.observer.policies import POLICIES, Policy, needs_list
from coinhaze.options import known

Linker = Callable[..., str]


class RuleChoice(NamedTuple):
    """A rule that can be chosen; without `href` it cannot be chosen yet."""

    policy: str
    words: str
    href: str | None
    on: bool


class MenuEntry(NamedTuple):
    """An entry of a menu."""

    href: str
    words: str
    on: bool


class Menu(NamedTuple):
    """A choice of one: links in a fold, so that it works without script."""

    label: str
    name: str
    help: str  # what the option is for
    now: str
    choices: list[MenuEntry]


class Choices(NamedTuple):
    """All that can be chosen; what a ledger does not offer is not there."""

    rules: list[RuleChoice]
    help: str  # what a rule is
    menus: list[Menu]


def choices_of(
    card: LedgerCard, ask: Settings, used: Settings, lists: Sequence[ListCard], link: Linker
) -> Choices:
    """List what can be chosen, and what is chosen now."""
    policies = card.policies or (used.policy,)
    rules = [_rule(policy, used, ask, lists, link) for policy in _in_order(policies)]
    menus = [
        _menu(
            "Nodes are",
            "view",
            _options("view", card.views, VIEWS, used.view, link),
            known("view").help,
        ),
        # Coins have no balances over time: there the choice means nothing.
        _menu(
            "Time",
            "time",
            _options("time", card.times if used.time else (), TIMES, used.time, link),
            known("time").help,
        ),
        _menu("Exposure to", "list", _lists(lists, used, link)),
    ]
    return Choices(rules, known("policy").help, [menu for menu in menus if menu.choices])


def _in_order(names: Sequence[str]) -> list[Policy]:
    """Put policies that use amounts first, and those that need a list last."""
    found = [policy for policy in POLICIES if policy.column in names]
    return sorted(found, key=lambda p: (p.needs_list, "amounts" not in p.needs))


def _rule(
    policy: Policy, used: Settings, ask: Settings, lists: Sequence[ListCard], link: Linker
) -> RuleChoice:
    changes: dict[str, object] = {"policy": policy.column, "open": ()}
    href: str | None = None
    if lists or not policy.needs_list or ask.list is not None:
        if policy.needs_list and ask.list is None:  # it has no meaning without a list
            changes["list"] = lists[0].id
        href = link(**changes)
    return RuleChoice(policy.column, policy.label, href, used.policy == policy.column)


def _options(
    name: str, options: Sequence[str], words: dict[str, str], used: str | None, link: Linker
) -> list[MenuEntry]:
    if len(options) < 2:
        return []
    # The ledger's own default is left out of links.
    return [
        MenuEntry(link(**{name: None if k == 0 else o, "open": ()}), words.get(o, o), o == used)
        for k, o in enumerate(options)
    ]


def _lists(lists: Sequence[ListCard], used: Settings, link: Linker) -> list[MenuEntry]:
    if not lists:
        return []
    current = (used.list or "").partition("@")[0]
    found = (
        []
        if needs_list(used.policy)
        else [MenuEntry(link(list=None, open=()), "none", not current)]
    )
    return found + [
        MenuEntry(
            link(list=each.id, open=()), f"{each.name} ({each.entries:,})", each.name == current
        )
        for each in lists
    ]


def _menu(label: str, name: str, choices: list[MenuEntry], help: str = "") -> Menu:
    now = next((choice.words for choice in choices if choice.on), "choose")
    return Menu(label, name, help, now, choices)

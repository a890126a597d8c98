"""How the money is followed: rule, nodes, time, list; each choice is a link to share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coinhaze.explore.describe import TIMES, VIEWS
from coinhaze.explore.models import LedgerCard, ListCard
from coinhaze.observer.policies import POLICIES, Policy, needs_list
from coinhaze.options import known
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import Settings
from coinhaze.web.pages.say import tag

Linker = Callable[..., str]


def switches(
    card: LedgerCard,
    ask: Settings,
    used: Settings,
    lists: Sequence[ListCard],
    link: Linker,
    *,
    report: bool = True,
) -> Html:
    """Give the bar of choices; what a ledger does not offer is not there."""
    policies = card.policies or (used.policy,)
    rules = "".join(_rule(policy, used, ask, lists, link) for policy in _in_order(policies))
    parts = [
        f'<div><span class="lab" id="lp"{_help("policy")}>Follow value by</span>'
        f'<span class="seg" role="group" aria-labelledby="lp">{rules}</span></div>',
        _choice("Nodes are", "view", card.views, VIEWS, used.view, link),
        # Coins have no balances over time: there the choice means nothing.
        _choice("Time", "time", card.times if used.time else (), TIMES, used.time, link),
        _lists(lists, ask, used, link),
    ]
    if report:
        parts.append(
            '<span class="grow"></span><span class="actions"><button class="btn js" type="button" '
            'id="copy-link">Copy link</button> <button class="btn js" type="button" id="report">'
            "Report…</button></span>"
        )
    return Html(
        '<div class="tools" role="group" aria-label="How to follow the money">'
        f"{''.join(parts)}</div>"
    )


def _in_order(names: Sequence[str]) -> list[Policy]:
    """Put policies that use amounts first, and those that need a list last."""
    found = [policy for policy in POLICIES if policy.column in names]
    return sorted(found, key=lambda p: (p.needs_list, "amounts" not in p.needs))


def _rule(
    policy: Policy, used: Settings, ask: Settings, lists: Sequence[ListCard], link: Linker
) -> Html:
    changes: dict[str, object] = {"policy": policy.column, "open": ()}
    if policy.needs_list and ask.list is None:
        if not lists:
            return tag(
                "span",
                policy.label,
                kind="off",
                title=f"{policy.label} needs a list: start with --list NAME=FILE",
            )
        # It has no meaning without a list.
        changes["list"] = lists[0].id
    return tag(
        "a",
        policy.label,
        href=link(**changes),
        id=f"rule-{policy.column}",
        data_swap="",
        aria_current="true" if used.policy == policy.column else None,
    )


def _choice(
    label: str,
    name: str,
    options: Sequence[str],
    words: dict[str, str],
    used: str | None,
    link: Linker,
) -> str:
    """Give a choice of one; a list of links in a fold, so that it works without script."""
    if len(options) < 2:
        return ""
    # The ledger's own default is left out of links.
    targets = [
        (link(**{name: None if k == 0 else o, "open": ()}), o) for k, o in enumerate(options)
    ]
    rows = [(href, words.get(o, o), o == used) for href, o in targets]
    return _menu(label, name, rows, help=_help(name))


def _help(name: str) -> str:
    """Give what an option is for, to be shown beside its label."""
    return f' title="{escape(known(name).help)}"'


def _lists(lists: Sequence[ListCard], ask: Settings, used: Settings, link: Linker) -> str:
    if not lists:
        return ""
    current = (used.list or "").partition("@")[0]
    rows = [] if needs_list(used.policy) else [(link(list=None, open=()), "none", not current)]
    rows += [
        (link(list=card.id, open=()), f"{card.name} ({card.entries:,})", card.name == current)
        for card in lists
    ]
    return _menu("Exposure to", "list", rows)


def _menu(label: str, name: str, rows: Sequence[tuple[str, str, bool]], *, help: str = "") -> str:
    now = next((words for _, words, on in rows if on), "choose")
    links = "".join(
        tag("a", words, href=href, data_swap="", aria_current="true" if on else None)
        for href, words, on in rows
    )
    return (
        f'<div><span class="lab"{help}>{escape(label)}</span>'
        f'<details class="menu" id="menu-{name}">'
        f'<summary aria-label="{escape(label)}: {escape(now)}">{escape(now)}</summary>'
        f'<div class="sheet">{links}</div></details></div>'
    )

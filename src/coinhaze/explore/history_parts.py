"""Parts of the pages of a whole history: origins of a coin, coins by type of script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coinhaze.explore.describe import short_id
from coinhaze.explore.models import CoinsOfType, Origin, Other
from coinhaze.explore.query import thing_link
from coinhaze.history.origins import CoinOrigins
from coinhaze.history.table import history_table
from coinhaze.ledger.script_types import SCRIPT_TYPES

if TYPE_CHECKING:
    from coinhaze.explore.history import HistoryExplorer


def origins_between(
    explorer: HistoryExplorer, found: CoinOrigins, first: int, last: int
) -> tuple[Origin, ...]:
    """Give some of a coin's origins, largest first."""
    rows = []
    for k, origin in enumerate(found.origins[first:last], first):
        name = origin.source
        mined = name.startswith(("tx:", "mint:"))
        bare = name.removeprefix("tx:")
        if explorer.accounts:
            href, words = None, f"{'Mint' if mined else 'Account'} {short_id(name)}"
        elif mined:
            href, words = thing_link(explorer.id, "tx", bare), f"Mined in {short_id(bare)}"
        elif name.startswith("pool:"):
            href, words = None, f"Pool {short_id(name)}, before the history"
        else:
            href, words = None, f"Coin {short_id(name)}, made before the history"
        rows.append(
            Origin(
                rank=k, name=name, words=words, kind="mined" if mined else "earlier",
                share=min(origin.probability, 1.0), href=href,
            )
        )  # fmt: skip
    return tuple(rows)


def rest_of(found: CoinOrigins, first: int, last: int) -> Other:
    """Sum up the origins that are not shown."""
    shown = sum(o.probability for o in found.origins[first:last])
    rest = len(found.origins) - (last - first)
    return Other(count=rest, share=min(max(1.0 - shown, 0.0), 1.0) if rest else 0.0)


def script_types(explorer: HistoryExplorer) -> tuple[CoinsOfType, ...]:
    """Give the unspent coins by type of script; nothing where no type is known."""
    rows = history_table(explorer.scores, "script-type").to_pylist()
    if all(row["group"] == SCRIPT_TYPES[0] for row in rows):
        return ()
    return tuple(
        CoinsOfType(
            script_type=row["group"],
            coins=row["coins"],
            amount=explorer.amount(row["value"]),
            bits_mean=row["bits_mean"],
            bits_median=row["bits_median"],
            bits_by_value=row["bits_by_value"],
            one_origin=row["certain"],
        )
        for row in rows
    )

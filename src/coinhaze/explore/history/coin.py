"""One coin of a whole history: its bits, and the origins that a walk back over the tape finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coinhaze.explore.coin.flow import COIN, origin_nodes, straight_flow
from coinhaze.explore.describe import (
    band_words,
    bits_words,
    equal_words,
    range_words,
    sentence,
    short_id,
    though_words,
)
from coinhaze.explore.distribution import (
    place_among,
)
from coinhaze.explore.models import (
    CoinAnswer,
    FlowNode,
    Origin,
    Other,
    Sentence,
)
from coinhaze.explore.query import CoinQuery, thing_link
from coinhaze.history.scores.origins import CoinOrigins
from coinhaze.measures.scores import ZERO

if TYPE_CHECKING:
    from coinhaze.explore.history.explorer import HistoryExplorer


NO_VALUES = "It is spent, or can never be: a history holds the values of unspent coins alone."


def answer_coin(explorer: HistoryExplorer, name: str, query: CoinQuery) -> CoinAnswer:
    """Give a coin's page: its bits, and the origins that a walk back over the tape finds."""
    used, found = explorer.settings(query), explorer.walk(name)
    bits = 0.0 if found.bits_high <= ZERO else found.bits
    top = min(found.origins[0].probability, 1.0)
    origins = origin_rows(explorer, found, 0, query.top)
    other = rest_of(found, 0, len(origins))
    kind = explorer.kind_of(found.node)
    coin = FlowNode(
        id=COIN,
        column=0,
        kind=kind,
        name=found.node,
        words=short_id(found.node),
        share=1.0,
    )
    words = sentence(bits, top_share=top, noun=kind)
    notes = () if found.balance is not None else (NO_VALUES,)
    return CoinAnswer(
        ledger=explorer.id,
        digest=explorer.digest,
        settings=used,
        name=found.node,
        kind=kind,
        amount=None if found.balance is None else explorer.amount(found.balance),
        spent=found.balance is None,
        height=found.height,
        made_by=found.node.rpartition(":")[0] if kind == "coin" else None,
        bits=bits,
        bits_low=found.bits_low,
        bits_high=found.bits_high,
        method=f"walk back over {found.rows:,} rows of the tape",
        sentence=Sentence(
            text=words,
            equal_origins=2.0**bits,
            equal=equal_words(bits),
            band=band_words(bits),
            though=though_words(top, bits),
            shown=bits_words(bits, found.bits_low, found.bits_high),
            range=range_words(found.bits_low, found.bits_high),
        ),
        place=place_among(explorer.sorted_bits, bits),
        steps=found.steps,
        steps_nearest=None,
        sources=len(found.origins),
        top_share=top,
        origins=origins,
        other=other,
        exposure=None,
        flow=straight_flow(
            coin, origin_nodes(origins, other), by="hop",
            text="Origins of a whole history are drawn straight to the coin.",
        ),
        notes=notes,
        provenance=explorer.provenance(),
    )  # fmt: skip


def origin_rows(
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
    """Give what the other origins have together."""
    shown = sum(o.probability for o in found.origins[first:last])
    rest = len(found.origins) - (last - first)
    return Other(count=rest, share=min(max(1.0 - shown, 0.0), 1.0) if rest else 0.0)

"""Account ledgers -> flows: accounts hold money, mints and burns are nodes of their own."""

from __future__ import annotations

import numpy as np

from coinhaze.graph.clusters.merge import Clusters, merge_owners
from coinhaze.graph.flows import Flows, index_type
from coinhaze.graph.graph import Kind
from coinhaze.graph.names import PartyNames, PrefixBlock, TextBlock
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.text import TextIndex


def account_flows(ledger: AccountLedger, *, mint: str, clusters: Clusters | None) -> Flows:
    """Treat each transfer as one step; with `mint` "each" the zero address is not a party."""
    merged = merge_owners(ledger.accounts, clusters)
    zero = ledger.is_zero_address() & (mint == "each")
    made, burnt = zero[ledger.sender], zero[ledger.receiver]
    dropped = made & burnt
    ids = TextIndex(ledger.transfer_ids())
    n = len(merged.names)
    made_rows, burnt_rows = np.flatnonzero(made), np.flatnonzero(burnt)
    kind = index_type(len(ledger), n + len(made_rows) + len(burnt_rows))
    tail, head = (merged.number[who].astype(kind) for who in (ledger.sender, ledger.receiver))
    tail[made_rows] = n + np.arange(len(made_rows))
    head[burnt_rows] = n + len(made_rows) + np.arange(len(burnt_rows))
    head[dropped] = tail[dropped]
    counts = (n, len(made_rows), len(burnt_rows))
    parties = sum(counts)
    lost = None
    if ledger.fees is not None:
        lost = ledger.fees.total_by(merged.number[ledger.sender], parties)
    kinds = np.repeat(np.array([Kind.account, Kind.mint, Kind.burn], dtype=np.int8), counts)
    return Flows(
        names=PartyNames(
            [
                TextBlock(merged.names),
                PrefixBlock("mint", ids, made_rows),
                PrefixBlock("burn", ids, burnt_rows),
            ]
        ),
        kinds=kinds,
        holds=kinds == Kind.account,
        can_sink=kinds != Kind.mint,
        step=np.arange(len(ledger), dtype=kind),
        tail=tail,
        head=head,
        amounts=ledger.amounts,
        payment_flow=np.arange(len(ledger), dtype=kind),
        payment_amounts=ledger.amounts,
        ledger=ledger,
        lone=np.zeros(parties, dtype=np.bool_),
        lost=lost,
        others=merged.others,
    )

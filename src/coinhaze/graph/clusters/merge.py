"""Clusters: addresses that an observer knows to belong to one entity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse

from coinhaze.amounts import Ints
from coinhaze.graph.clusters.coinjoins import CoinJoin, CoinJoinKinds, coinjoin_kinds
from coinhaze.graph.names import Aliases
from coinhaze.ledger import CoinLedger

Clusters = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Merged:
    """Owners after merging: their names, the new number of each old owner, and the old names."""

    names: pa.StringArray
    number: Ints
    others: Aliases


def merge_owners(owners: pa.StringArray, clusters: Clusters | None) -> Merged:
    """Merge owners by a table address -> cluster; those absent from it stay as they are."""
    if not clusters:
        nothing = np.zeros(0, dtype=np.int64)
        none = Aliases(pa.array([], pa.string()), nothing, nothing)
        return Merged(owners, np.arange(len(owners)), none)
    old = owners.to_pylist()
    encoded = pa.array([clusters.get(o, o) for o in old], pa.string()).dictionary_encode()
    number = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    moved = np.array([k for k, o in enumerate(old) if clusters.get(o, o) != o], dtype=np.int64)
    others = Aliases(owners.take(pa.array(moved)), np.arange(len(moved)), number[moved])
    return Merged(names=encoded.dictionary, number=number, others=others)


def common_input_clusters(ledger: CoinLedger, *, coinjoins: bool = True) -> Clusters:
    """Treat all owners of a transaction's inputs as one entity, named by its first address.

    With `coinjoins` false the inputs of what looks like a CoinJoin stay separate.

    >>> from coinhaze.ledger import CoinLedger
    >>> common_input_clusters(CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 1, "address": "a"},
    ...     {"txid": "y", "vout": 0, "value": 1, "address": "b"}], "outputs": []}]))
    {'b': 'a'}
    """
    owner, joint = common_inputs(ledger, coinjoins=coinjoins)
    return named_clusters(ledger, cluster_labels(ledger, owner, joint))


def common_inputs(
    ledger: CoinLedger, *, coinjoins: bool, kinds: CoinJoinKinds | None = None
) -> tuple[Ints, Ints]:
    """Give the owner of each input and its transaction, without CoinJoins unless they are included.

    `kinds` are those of `coinjoin_kinds`, where they are known already.
    """
    owner, joint = ledger.output_owner[ledger.input_output], ledger.input_tx
    if coinjoins:
        return owner, joint
    kinds = coinjoin_kinds(ledger) if kinds is None else kinds
    retained = kinds[joint] == CoinJoin.none
    return owner[retained], joint[retained]


def cluster_labels(ledger: CoinLedger, owner: Ints, joint: Ints) -> Ints:
    """Give the same label to owners joined directly or indirectly: each `owner` to a `joint`."""
    return connected(len(ledger.owners), owner, joint)


def connected(n: int, owner: Ints, joint: Ints) -> Ints:
    """Label the numbers below n: those joined directly or indirectly have the same label.

    >>> connected(4, np.array([0, 2, 2, 3]), np.array([7, 7, 9, 9])).tolist()
    [0, 1, 0, 0]
    """
    from scipy.sparse.csgraph import connected_components  # with all of scipy.linalg

    m = n + int(joint.max(initial=-1)) + 1
    links = scipy.sparse.coo_array(
        (np.ones(len(owner), dtype=np.int8), (owner, n + joint)), shape=(m, m)
    )
    label: Ints = connected_components(links, directed=False)[1][:n]
    return label


def named_clusters(ledger: CoinLedger, label: Ints) -> Clusters:
    """Name the owners that share a label by the first of them."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    head = first[inverse]
    names = ledger.owners.to_pylist()
    return {names[k]: names[head[k]] for k in np.flatnonzero(head != np.arange(len(names)))}

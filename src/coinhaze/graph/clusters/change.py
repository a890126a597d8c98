"""Change: which output of a payment went back to the payer.

Candidates are narrowed in steps until exactly one output remains: it must be paid to an address
that the ledger has not seen before; then have the same address type as all inputs; then not be a
round sum while all others are. A payment to one of its own input addresses has its change there,
and no other is named. CoinJoins, and payments with more than a few outputs, are left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, CoinJoinKinds, coinjoin_kinds, satoshi
from coinhaze.graph.clusters.merge import (
    Clusters,
    cluster_labels,
    common_inputs,
    named_clusters,
)
from coinhaze.ledger import CoinLedger

ROUND = 100_000  # satoshi: what people consider a round sum
MAX_OUTPUTS = 3  # of a payment; a person rarely pays more people at once
# Address prefixes on Bitcoin's networks: to a key, to a script, and by witness version.
_TYPES = (
    r"^[1mn]",
    r"^[32]",
    r"^(bc|tb|bcrt)1q.{38}$",
    r"^(bc|tb|bcrt)1q.{58}$",
    r"^(bc|tb|bcrt)1p",
)
_UNKNOWN = -1


def change_outputs(ledger: CoinLedger, kinds: CoinJoinKinds | None = None) -> Ints:
    """Return the outputs identified as change, as rows of the ledger's outputs.

    `kinds` are those of `coinjoin_kinds`, where they are known already.

    >>> from coinhaze.ledger import CoinLedger
    >>> ledger = CoinLedger.from_transactions([
    ...     {"txid": "a", "inputs": [], "outputs": [{"value": 9, "address": "shop"}]},
    ...     {"txid": "b", "inputs": [{"txid": "x", "vout": 0, "value": 50, "address": "me"}],
    ...      "outputs": [{"value": 20, "address": "shop"}, {"value": 29, "address": "new"}]}])
    >>> ledger.output_names(change_outputs(ledger)).to_pylist()
    ['b:1']
    """
    if ledger.output_value is None:
        raise UsageError("change is recognised by amounts, which this ledger hides")
    made = np.flatnonzero(ledger.inside[ledger.output_tx] & ledger.output_spendable)
    tx = ledger.output_tx[made]
    count = np.bincount(tx, minlength=len(ledger.txids))
    fits = (count >= 2) & (count <= MAX_OUTPUTS) & ~ledger.coinbase
    kinds = coinjoin_kinds(ledger) if kinds is None else kinds
    fits &= (kinds == CoinJoin.none) & ~_pays_itself(ledger)
    fits[np.setdiff1d(np.arange(len(fits)), ledger.input_tx)] = False  # money out of a pool alone
    made = made[fits[tx]]
    tx = ledger.output_tx[made]
    left = _is_fresh(ledger)[made] & ~ledger.owner_is_coin[ledger.output_owner[made]]
    kind = _types(ledger.owners)
    paid_with = _input_type(ledger, kind)
    same_type = kind[ledger.output_owner[made]] == paid_with[tx]
    is_round = satoshi(ledger)[made] % ROUND == 0
    rounds = np.bincount(tx[is_round], minlength=len(count))
    uneven = ~is_round & (rounds[tx] == count[tx] - 1)
    chosen = np.zeros(len(made), dtype=np.bool_)
    for step in (
        np.ones(len(made), dtype=np.bool_),
        same_type & (paid_with[tx] != _UNKNOWN),
        uneven,
    ):
        narrower = left & step
        one = np.bincount(tx[narrower], minlength=len(count)) == 1
        chosen |= narrower & one[tx]
        left &= ~one[tx]
    return made[chosen]


def change_clusters(ledger: CoinLedger) -> Clusters:
    """Treat owners of inputs and of change as one entity, leaving CoinJoin inputs separate.

    >>> from coinhaze.ledger import CoinLedger
    >>> change_clusters(CoinLedger.from_transactions([
    ...     {"txid": "a", "inputs": [], "outputs": [{"value": 9, "address": "shop"}]},
    ...     {"txid": "b", "inputs": [{"txid": "x", "vout": 0, "value": 50, "address": "me"}],
    ...      "outputs": [{"value": 20, "address": "shop"}, {"value": 29, "address": "new"}]}]))
    {'new': 'me'}
    """
    kinds = coinjoin_kinds(ledger)
    payers, spent_in = common_inputs(ledger, coinjoins=False, kinds=kinds)
    change = change_outputs(ledger, kinds)
    owner = np.concatenate([payers, ledger.output_owner[change]])
    joint = np.concatenate([spent_in, ledger.output_tx[change]])
    return named_clusters(ledger, cluster_labels(ledger, owner, joint))


def _pays_itself(ledger: CoinLedger) -> Bools:
    """Return which transactions pay an owner of one of their inputs."""
    n = np.int64(len(ledger.owners))  # products of row numbers may pass what 32 bits hold
    payers = np.sort(ledger.input_tx * n + ledger.output_owner[ledger.input_output])
    payees = ledger.output_tx * n + ledger.output_owner
    back = np.append(payers, -1)[np.searchsorted(payers, payees)] == payees
    found = np.zeros(len(ledger.txids), dtype=np.bool_)
    found[ledger.output_tx[back]] = True
    return found


def _is_fresh(ledger: CoinLedger) -> Bools:
    """Return which outputs are the first of their owner in the ledger."""
    # The owner of a coin from before the window existed before; other rows are in order of time.
    time = np.where(ledger.inside[ledger.output_tx], ledger.output_tx, -1)
    first = np.full(len(ledger.owners), len(ledger.txids))
    np.minimum.at(first, ledger.output_owner, time)
    fresh: Bools = (first[ledger.output_owner] == time) & (time >= 0)
    return fresh


def _types(owners: pa.StringArray) -> Ints:
    """Number the types of addresses, -1 for unknown ones."""
    kind = np.full(len(owners), _UNKNOWN)
    for number, pattern in enumerate(_TYPES):
        found = pc.match_substring_regex(owners, pattern).to_numpy(zero_copy_only=False)
        kind[found.astype(np.bool_)] = number
    return kind


def _input_type(ledger: CoinLedger, of_owner: Ints) -> Ints:
    """Return the common type of all inputs of a transaction, -1 where they differ."""
    kind = of_owner[ledger.output_owner[ledger.input_output]]
    low = np.full(len(ledger.txids), len(_TYPES))
    high = np.full(len(ledger.txids), _UNKNOWN)
    np.minimum.at(low, ledger.input_tx, kind)
    np.maximum.at(high, ledger.input_tx, kind)
    return np.where(low == high, high, _UNKNOWN)

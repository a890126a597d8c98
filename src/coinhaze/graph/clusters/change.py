"""Change: which output of a payment went back to the payer.

Candidates are narrowed in steps until exactly one output remains: it must be paid to an address
that the ledger has not seen before; then have the same address type as all inputs; then not be a
round sum while all others are. A payment to one of its own input addresses has its change there,
and no other is named. CoinJoins, and payments with more than a few outputs, are left out.

A payment that has not been made yet is judged by every sign there is (`evident_change`), since
different observers look at different ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
from coinhaze.ledger.coins import Input, Output

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
    fits &= np.bincount(ledger.input_tx, minlength=len(fits)) > 0  # money out of a pool alone
    made = made[fits[tx]]
    tx = ledger.output_tx[made]
    is_round = satoshi(ledger)[made] % ROUND == 0
    rounds = np.bincount(tx[is_round], minlength=len(count))
    uneven = ~is_round & (rounds[tx] == count[tx] - 1)
    left = np.flatnonzero(
        _is_fresh(ledger)[made] & ~ledger.owner_is_coin[ledger.output_owner[made]]
    )
    chosen = np.zeros(len(made), dtype=np.bool_)
    for step in range(3):
        narrower = left
        if step == 1:
            narrower = left[_is_paid_in_kind(ledger, made[left])]
        elif step == 2:
            narrower = left[uneven[left]]
        one = np.bincount(tx[narrower], minlength=len(count)) == 1
        chosen[narrower[one[tx[narrower]]]] = True
        left = left[~one[tx[left]]]
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


@dataclass(frozen=True)
class ChangeEvidence:
    """What distinguishes the outputs of one payment: for each sign, the output it calls change."""

    signs: tuple[tuple[int, str], ...] = ()

    @property
    def output(self) -> int | None:
        """The output that the signs agree on; None where there are none, or they disagree."""
        found = {output for output, _ in self.signs}
        return found.pop() if len(found) == 1 else None

    @property
    def reasons(self) -> tuple[str, ...]:
        """The signs in words."""
        return tuple(reason for _, reason in self.signs)


def evident_change(
    inputs: Sequence[Input], outputs: Sequence[Output], seen: Callable[[str], bool]
) -> ChangeEvidence:
    """Find which output of a payment an observer takes for its change, and by which signs.

    `seen` says whether an address is in the ledger already. An output that goes back to an address
    of an input is the change, whatever else can be said.

    >>> spent = [Input("t", 0, 950_000, "1a")]
    >>> paid = [Output(200_000, "3b"), Output(749_000, "1c")]
    >>> evident_change(spent, paid, lambda address: False).signs
    ((1, 'its address is of the type of the coins spent'), (1, 'the rest are round sums'))
    """
    paid = [k for k, output in enumerate(outputs) if output.spendable]
    if not 2 <= len(paid) <= MAX_OUTPUTS:
        return ChangeEvidence()
    payers = {given.address for given in inputs if given.address is not None}
    back = [k for k in paid if outputs[k].address in payers]
    if back:
        reason = "it goes back to an address that coins came from"
        return ChangeEvidence(tuple((k, reason) for k in back))
    address = {k: outputs[k].address for k in paid}
    value = {k: outputs[k].value for k in paid}
    kinds = {None if given.address is None else address_type(given.address) for given in inputs}
    kind = kinds.pop() if len(kinds) == 1 else None
    types = {k: None if a is None else address_type(a) for k, a in address.items()}
    spent = [given.value for given in inputs]
    known = None not in spent and None not in value.values()
    smallest = min((v or 0 for v in spent), default=0)
    signs = (
        (
            "the rest go to addresses seen before",
            [k for k in paid if (a := address[k]) is not None and not seen(a)],
            None not in address.values(),
        ),
        (
            "its address is of the type of the coins spent",
            [k for k in paid if types[k] == kind],
            kind is not None and None not in types.values(),
        ),
        ("the rest are round sums", [k for k in paid if (value[k] or 0) % ROUND], known),
        (
            "it is less than every coin spent: as a payment, it would not need them all",
            [k for k in paid if (value[k] or 0) < smallest],
            known and len(inputs) > 1,
        ),
    )
    found = [(who[0], reason) for reason, who, applies in signs if applies and len(who) == 1]
    return ChangeEvidence(tuple(found))


def address_type(address: str) -> int | None:
    """Number the type of one address; None if it is unknown.

    >>> address_type("1abc"), address_type("alice")
    (0, None)
    """
    return next((k for k, pattern in enumerate(_TYPES) if re.search(pattern, address)), None)


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
    # The owner of a coin from before the window existed before; other rows are in order of time, so
    # that written last to first, the first of each owner stays.
    outside = ~ledger.inside[ledger.output_tx]
    time = np.where(outside, -1, ledger.output_tx)
    first = np.full(len(ledger.owners), len(ledger.txids))
    first[ledger.output_owner[::-1]] = time[::-1]
    first[ledger.output_owner[outside]] = -1
    fresh: Bools = (first[ledger.output_owner] == time) & (time >= 0)
    return fresh


def _is_paid_in_kind(ledger: CoinLedger, outputs: Ints) -> Bools:
    """Return which outputs are paid to an address of the one type that all inputs have."""
    tx = ledger.output_tx[outputs]
    wanted = np.zeros(len(ledger.txids), dtype=np.bool_)
    wanted[tx] = True
    given = np.flatnonzero(wanted[ledger.input_tx])
    payer = ledger.output_owner[ledger.input_output[given]]
    owners = np.concatenate([payer, ledger.output_owner[outputs]])
    kinds = _types(ledger.owners.take(pa.array(owners)))
    low = np.full(len(wanted), len(_TYPES))
    high = np.full(len(wanted), _UNKNOWN)
    np.minimum.at(low, ledger.input_tx[given], kinds[: len(given)])
    np.maximum.at(high, ledger.input_tx[given], kinds[: len(given)])
    paid_with = np.where(low == high, high, _UNKNOWN)[tx]
    same: Bools = (kinds[len(given) :] == paid_with) & (paid_with != _UNKNOWN)
    return same


def _types(owners: pa.StringArray) -> Ints:
    """Number the types of addresses, -1 for unknown ones."""
    kind = np.full(len(owners), _UNKNOWN)
    left = np.arange(len(owners))  # an address has one type at most
    for number, pattern in enumerate(_TYPES):
        names = owners.take(pa.array(left))
        found = pc.match_substring_regex(names, pattern).to_numpy(zero_copy_only=False)
        kind[left[found.astype(np.bool_)]] = number
        left = left[~found.astype(np.bool_)]
    return kind

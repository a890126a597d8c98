"""Hot loops that write transfers between accounts as coins, one for what each account holds.

Slow twin in the tests: `coinhaze.score` in the order of time (tests/history/test_accounts.py).
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel

# Who names a transaction: an account by its snapshot, or a transfer as a mint or as a burn.
SNAPSHOT, MINT, BURN = range(3)
OPENING = -1  # the transaction of a coin that was there before all transfers


@kernel()
def min_openings(sender, receiver, amount, minted, burnt, accounts):
    """Give what each account must have had so that it never has less than nothing.

    Also gives an account that has more than 2^63 - 1 some time or other, or -1.
    """
    balance = np.zeros(accounts, np.int64)
    lowest = np.zeros(accounts, np.int64)
    highest = np.zeros(accounts, np.int64)
    for k in range(len(sender)):
        u, v = sender[k], receiver[k]
        if not minted[k]:
            if balance[u] < 0 and balance[u] - amount[k] >= 0:
                return lowest, u
            balance[u] -= amount[k]
            lowest[u] = min(lowest[u], balance[u])
        if not burnt[k]:
            if balance[v] > 0 and balance[v] + amount[k] < 0:
                return lowest, v
            balance[v] += amount[k]
            highest[v] = max(highest[v], balance[v])
    for u in range(accounts):
        if highest[u] - lowest[u] < 0 or -lowest[u] < 0:
            return lowest, u
    return lowest, -1


@kernel()
def coins_of_transfers(
    sender,
    receiver,
    amount,
    minted,
    burnt,
    balance,  # of each account before all transfers; used up
    transfer,  # of each transaction: the transfer it is of, ...
    party,  # ... the account that has its first output, ...
    snapshot,  # ... which snapshot of it that is, ...
    kind,  # ... and what names it
    inputs,
    outputs,
    spent,  # of each input: the transaction that made the coin, or OPENING, ...
    spent_vout,
    spent_value,
    spent_by,  # ... and the account whose coin it is
    made_value,
    spendable,
):
    """Write transfers as transactions; give how many transactions, inputs and outputs.

    An account has one coin, worth all it holds. A transfer of a part of it splits the coin, one of
    all of it passes it on; the receiver's coin and the one that comes become one.
    """
    accounts = len(balance)
    maker = np.full(accounts, OPENING, np.int64)
    number = np.zeros(accounts, np.int64)
    t = i = o = 0
    for k in range(len(sender)):
        u, v, value = sender[k], receiver[k], amount[k]
        moved, vout, whose = OPENING, 0, u
        if minted[k]:
            transfer[t], party[t], snapshot[t], kind[t] = k, u, 0, MINT
            inputs[t], outputs[t] = 0, 1
            made_value[o], spendable[o] = value, True
            moved = t
            t += 1
            o += 1
        elif balance[u] == value and not burnt[k]:
            moved = maker[u]
            balance[u] = 0
        else:
            transfer[t], party[t], snapshot[t], kind[t] = k, u, number[u], SNAPSHOT
            if balance[u] == value:
                kind[t] = BURN
            spent[i], spent_vout[i], spent_value[i] = maker[u], 0, balance[u]
            spent_by[i] = u
            i += 1
            balance[u] -= value
            inputs[t], outputs[t] = 1, 2
            made_value[o], spendable[o] = balance[u], balance[u] > 0
            made_value[o + 1], spendable[o + 1] = value, not burnt[k]
            maker[u] = moved = t
            vout = 1
            t += 1
            o += 2
        if burnt[k]:
            continue
        number[v] += 1
        transfer[t], party[t], snapshot[t], kind[t] = k, v, number[v], SNAPSHOT
        inputs[t], outputs[t] = 1, 1
        if balance[v] > 0:
            spent[i], spent_vout[i], spent_value[i] = maker[v], 0, balance[v]
            spent_by[i] = v
            i += 1
            inputs[t] = 2
        spent[i], spent_vout[i], spent_value[i], spent_by[i] = moved, vout, value, whose
        i += 1
        balance[v] += value
        made_value[o], spendable[o] = balance[v], True
        maker[v] = t
        t += 1
        o += 1
    return t, i, o

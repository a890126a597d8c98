"""The hot loop of simulated histories: transactions of one block after the other."""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.ledger.script_types import P2PK
from coinhaze.solve.sketch.kernels import mix

# Shares of transactions with 1, 2, 3, 4 and more inputs, then outputs; the slope of the tail.
ONE, TWO, THREE, FOUR, SLOPE = range(5)
MANY = 5
MAX_INPUTS, MAX_OUTPUTS = 1000, 2000
DUST = 546  # satoshi: nodes relay no output worth less
# Places in the state: coins and transactions made.
COINS, TRANSACTIONS = range(2)


@kernel()
def id_word(seed, transaction, word):
    """Give a word of a transaction's id: a hash of its number."""
    return mix(mix(np.uint64(seed) * np.uint64(4) + np.uint64(word)) ^ np.uint64(transaction))


@kernel()
def _number(rng, shares, maximum):
    """Draw how many inputs or outputs a transaction has."""
    u = rng.random()
    for k in range(4):
        if u < shares[k]:
            return k + 1
        u -= shares[k]
    return min(maximum, int(MANY * rng.random() ** (-1.0 / shares[SLOPE])))


@kernel()
def _pick(rng, made, low, high, older, spent, value, minimum, mask):
    """Draw a coin to spend by its age, counted in coins; -1 where none was found.

    Coins worth less than `minimum` are passed over. Ages are log-uniform from `low` to `high`, and
    for a share `older` uniform over all coins.
    """
    for _ in range(8):
        if rng.random() < older:
            age = int(made * rng.random())
        else:
            age = int(low * rng.random() * (high / low) ** rng.random())
        at = made - 1 - age
        last = max(0, made - 1 - mask, at - 16)
        while at >= last and at >= 0:
            if not spent[at & mask] and value[at & mask] >= minimum:
                return at
            at -= 1
    return -1


def _steps(sizes, *rest):
    return 8 * int(sizes.sum())  # as long as plain Python takes, in entries; columns have room


@kernel(entries=_steps)
def make_blocks(
    sizes,
    subsidy,
    ins,  # of each block: shares of transactions by how many inputs they have, and the tail
    outs,
    lost,  # of each block: the share of outputs that can never be spent
    ages,  # of each block: least and largest age of a spent coin, and the share of older ones
    seed,
    state,
    coin_value,
    coin_tx,
    coin_vout,
    spent,
    ids,
    inputs,
    outputs,
    spent_ids,
    spent_vouts,
    spent_values,
    made_values,
    made_vouts,
    made_spendable,
    rng,
):
    """Make blocks into arrays that have room for them; give how many inputs and outputs."""
    mask = len(spent) - 1
    i = o = t = 0
    for b in range(len(sizes)):
        for k in range(sizes[b]):
            number = state[TRANSACTIONS]
            total = np.int64(0)
            begin = i
            pays = 1 if k == 0 else _number(rng, outs[b], MAX_OUTPUTS)
            pays = min(pays, len(made_vouts) - o - (len(ids) - t))  # room for one each is left
            if k == 0:
                total = subsidy[b]
            else:
                wanted = min(_number(rng, ins[b], MAX_INPUTS), len(spent_vouts) - i)
                made = state[COINS]
                # What pays for all outputs comes first: change too small for that waits for others.
                minimum = np.int64(DUST) * pays
                for _ in range(wanted):
                    c = _pick(
                        rng, made, ages[b, 0], ages[b, 1], ages[b, 2], spent, coin_value, minimum,
                        mask,
                    )  # fmt: skip
                    if c < 0:
                        break
                    minimum = np.int64(0)
                    at = c & mask
                    spent[at] = True
                    for w in range(4):
                        spent_ids[i, w] = id_word(seed, coin_tx[at], w)
                    spent_vouts[i] = coin_vout[at]
                    spent_values[i] = coin_value[at]
                    total += coin_value[at]
                    i += 1
                if i == begin:
                    continue  # nothing to spend yet
            waiting = pays  # outputs that can be spent and are to be paid yet
            for q in range(pays):
                never = k > 0 and q > 0 and rng.random() < lost[b]
                made_spendable[o + q] = not never
                waiting -= never
            left = total
            for q in range(pays):
                never = not made_spendable[o]
                value = np.int64(0)
                if not never:
                    # Nearly equal parts: unequal parts of parts of parts are soon worth nothing.
                    value = left
                    if waiting > 1:
                        spare = left - DUST * waiting
                        value = DUST + np.int64(spare / waiting * (0.5 + rng.random()))
                    waiting -= 1
                left -= value
                made_values[o] = value
                made_vouts[o] = q
                o += 1
                if not never:
                    at = state[COINS] & mask
                    coin_value[at] = value
                    coin_tx[at] = number
                    coin_vout[at] = q
                    spent[at] = False
                    state[COINS] += 1
            for w in range(4):
                ids[t, w] = id_word(seed, number, w)
            inputs[t] = i - begin
            outputs[t] = pays
            t += 1
            state[TRANSACTIONS] += 1
        sizes[b] = t if b == 0 else t - sizes[:b].sum()
    return t, i, o


def _outputs(sizes, outputs, *rest):
    return 8 * int(outputs[: int(sizes.sum())].sum())


@kernel(entries=_outputs)
def draw_scripts(sizes, outputs, ids, paid, mined, scripts):
    """Draw the type of every output's script by a hash of its transaction's id and its number.

    `paid` and `mined` are, for each block, the shares of the types up to each, from p2pk on.
    """
    t = o = 0
    for b in range(len(sizes)):
        for k in range(sizes[b]):
            for q in range(outputs[t]):
                u = np.float64(mix(ids[t, 3] + np.uint64(q)) >> np.uint64(11)) * 2.0**-53
                code = 0
                if k == 0:
                    while code < mined.shape[1] - 1 and u >= mined[b, code]:
                        code += 1
                else:
                    while code < paid.shape[1] - 1 and u >= paid[b, code]:
                        code += 1
                scripts[o] = P2PK + code
                o += 1
            t += 1

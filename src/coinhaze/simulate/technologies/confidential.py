"""Confidential amounts: who pays whom is public, how much is not; of coins and of accounts."""

from __future__ import annotations

from dataclasses import replace

from coinhaze.observer.policies import UNIFORM
from coinhaze.simulate.accounts import TRANSFER_GAS, SimulatedAccounts, gas_fee
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technologies.deposit_pool import WITHDRAW_GAS
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import SimulatedWallets, Tariff

# An output carries a commitment in place of its amount, and a range proof: 16 points and 5 numbers
# for 64 bits (Bünz et al., "Bulletproofs", IEEE S&P 2018, section 4.2), some 690 bytes, which count
# a quarter, as witness data does in Elements.
PROOF = (16 * 33 + 5 * 32) // 4
COMMITMENT = 33 - 8


def make_confidential(intents: Intents, hidden: float, observer: str) -> Realised:
    """Make every payment with an ordinary wallet, and hide all amounts or none."""
    usual = Tariff()
    larger = replace(usual, an_output=usual.an_output + COMMITMENT + PROOF)
    wallets = SimulatedWallets.open(intents, tariff=larger if hidden else usual)
    for i in range(len(intents)):
        wallets.pay(i)
    note = "amounts are hidden: a coin counts as one, and no balance is known"
    return wallets.realised(
        adopters=intents.adopters(1.0),
        settings={"policy": UNIFORM.name} if hidden else {},
        notes=(note,) if hidden else (),
        hidden=bool(hidden),
    )


CONFIDENTIAL = Technology(
    name="confidential",
    make=make_confidential,
    parameter="amounts hidden: 0 no, 1 yes",
    minimum=0,
    maximum=1,
    values=(0, 1),
    usual=1,
    says="confidential transactions: coins are followed as before, but their amounts are hidden",
    observers={
        "amounts": "walks from coin to coin, by amounts if he sees them, else each counting as one"
    },
    whole=True,
)


def make_confidential_accounts(intents: Intents, hidden: float, observer: str) -> Realised:
    """Make every payment between main accounts, with amounts hidden if `hidden` is 1."""
    # One proof is verified per transfer, as for a withdrawal from a pool, hence the same gas.
    gas = WITHDRAW_GAS if hidden else TRANSFER_GAS
    wallets = SimulatedAccounts.open(intents, transfer_fee=gas_fee(gas))
    for i in range(len(intents)):
        wallets.pay(i)
    # The ledger here has amounts, since a holder must know them: the observer does not use them.
    return wallets.realised(
        adopters=intents.adopters(1.0), settings={"policy": UNIFORM.name} if hidden else {}
    )


CONFIDENTIAL_ACCOUNTS = Technology(
    name="confidential-accounts",
    make=make_confidential_accounts,
    parameter="whether amounts are hidden (0 or 1)",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 1.0),
    usual=1.0,
    says="accounts whose transfers hide amounts",
    observers={
        "hidden": "sees who paid whom and when, counts all who paid an account as equally likely"
    },
    whole=True,
)

"""Confidential accounts: transfers show who pays whom, but not how much."""

from __future__ import annotations

from coinhaze.observer.policies import UNIFORM
from coinhaze.simulate.accounts import TRANSFER_GAS, SimulatedAccounts, gas_fee
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technologies.deposit_pool import WITHDRAW_GAS
from coinhaze.simulate.technology import Realised, Technology


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
    least=0.0,
    most=1.0,
    values=(0.0, 1.0),
    usual=1.0,
    says="accounts whose transfers hide amounts",
    observers={
        "hidden": "sees who paid whom and when, counts all who paid an account as equally likely"
    },
    whole=True,
)

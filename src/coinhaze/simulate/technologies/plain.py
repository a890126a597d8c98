"""No privacy technology: ordinary wallets, and one account per person. Both are baselines."""

from __future__ import annotations

from typing import Any

from coinhaze.simulate.accounts import SimulatedAccounts
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import SimulatedWallets

BY_ADDRESS = "walks by amounts between addresses as they were at the time, not single coins"
BY_COIN = "walks by amounts from coin to coin"


def make_plain(intents: Intents, reuse: float, observer: str) -> Realised:
    """Make every payment with an ordinary wallet; a share of receipts goes to one old address."""
    # One random number per receipt, drawn once: more reuse adds receipts and removes none.
    opening = intents.dice("opening").random(len(intents.coin_owner))
    wallets = SimulatedWallets.open(intents, reuse=opening < reuse)
    dice = intents.dice("addresses").random((len(intents), 2))
    for i, (to_payee, to_change) in enumerate((dice < reuse).tolist()):
        wallets.pay(i, reuse=to_payee, reuse_change=to_change)
    settings: dict[str, Any] = {"view": "address", "time": "temporal"}
    return wallets.realised(
        adopters=intents.adopters(1.0), settings=settings if observer == "addresses" else {}
    )


PLAIN = Technology(
    name="plain",
    make=make_plain,
    parameter="share of receipts at an address used before",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 0.25, 0.5, 0.75, 1.0),
    usual=0.5,
    says="ordinary wallets that use an address again for a share of what they receive",
    observers={"addresses": BY_ADDRESS, "amounts": BY_COIN},
)


def make_accounts(intents: Intents, value: float, observer: str) -> Realised:
    """Make every payment from one main account to another."""
    wallets = SimulatedAccounts.open(intents)
    for i in range(len(intents)):
        wallets.pay(i)
    return wallets.realised(adopters=intents.adopters(1.0))


ACCOUNTS = Technology(
    name="accounts",
    make=make_accounts,
    parameter="nothing to turn",
    minimum=0.0,
    maximum=0.0,
    values=(0.0,),
    usual=0.0,
    says="one account a person, as on Ethereum, that pays and is paid",
    observers={"amounts": "walks back in time from account to account by amounts"},
)

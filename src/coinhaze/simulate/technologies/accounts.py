"""One account per person, used for everything: the baseline of account technologies."""

from __future__ import annotations

from coinhaze.simulate.accounts import SimulatedAccounts
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import Realised, Technology


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
    least=0.0,
    most=0.0,
    values=(0.0,),
    usual=0.0,
    says="one account a person, as on Ethereum, that pays and is paid",
    observers={"amounts": "walks back in time from account to account by amounts"},
)

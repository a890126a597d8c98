"""Stealth addresses: payers create a fresh address that only the payee can recognise."""

from __future__ import annotations

from coinhaze.simulate.accounts import SimulatedAccounts, gas_fee
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technologies.plain import BY_ADDRESS, BY_COIN, make_plain
from coinhaze.simulate.technology import Realised, Technology


def make_stealth(intents: Intents, share: float, observer: str) -> Realised:
    """Send a share of receipts to fresh addresses, all others to one address per person."""
    return make_plain(intents, 1.0 - share, observer)


STEALTH = Technology(
    name="stealth",
    make=make_stealth,
    parameter="share of receipts at fresh addresses",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 0.25, 0.5, 0.75, 1.0),
    usual=1.0,
    says="stealth addresses: receipts go to addresses used once, beside one that is used again",
    observers={"addresses": BY_ADDRESS, "amounts": BY_COIN},
)


# The payer informs the payee by calling the announcer contract (ERC-5564); the gas this takes is
# assumed.
ANNOUNCE_GAS = 30_000


def make_stealth_accounts(intents: Intents, share: float, observer: str) -> Realised:
    """Pay adopters into fresh accounts, from which they spend, using as few as possible."""
    wallets = SimulatedAccounts.open(intents)
    adopters = intents.adopters(share)
    for i in range(len(intents)):
        _, payee, _ = intents.payment(i)
        if adopters[payee]:
            wallets.pay(i, to=wallets.fresh(payee), more_fee=gas_fee(ANNOUNCE_GAS))
        else:
            wallets.pay(i)
    return wallets.realised(adopters=adopters)


STEALTH_ACCOUNTS = Technology(
    name="stealth-accounts",
    make=make_stealth_accounts,
    parameter="share of people who are paid at stealth addresses",
    minimum=0.0,
    maximum=1.0,
    values=(0.0, 0.25, 0.5, 0.75, 1.0),
    usual=0.25,
    says="accounts; adopters get every payment in a fresh account",
    observers={"amounts": "walks back in time from account to account by amounts"},
)

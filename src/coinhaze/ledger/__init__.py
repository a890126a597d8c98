"""What happened: ledgers of coins and of accounts, and the readers of their files."""

from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.amounts import Amounts
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.folder import read_folder, write_folder
from coinhaze.ledger.readers import Ledger, read

__all__ = [
    "AccountLedger",
    "Amounts",
    "CoinLedger",
    "Ledger",
    "read",
    "read_folder",
    "write_folder",
]

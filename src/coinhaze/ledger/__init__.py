"""What happened: ledgers of coins and of accounts."""

from coinhaze.amounts import Amounts
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.parquet import read_folder, write_folder

Ledger = CoinLedger | AccountLedger

__all__ = [
    "AccountLedger",
    "Amounts",
    "CoinLedger",
    "Ledger",
    "read_folder",
    "write_folder",
]

"""A ledger of coins from transactions or from tables, every rule checked."""

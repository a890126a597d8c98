"""One ledger explored, coin by coin: for the command, the page and notebooks."""

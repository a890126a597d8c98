"""One ledger explored: coins, groups, flows and origins, for the command, the page and notebooks."""

"""Results on disk: a ledger, its graph and chain, and scores, each rebuilt only when it changed."""

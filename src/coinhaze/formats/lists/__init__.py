"""Small files that people write: coins of a wallet, labels, lists of sources, links."""

"""Formats of JSON records: blocks and transactions of nodes and explorers."""

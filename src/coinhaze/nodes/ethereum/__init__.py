"""Ethereum nodes: blocks, logs and traces over JSON-RPC."""

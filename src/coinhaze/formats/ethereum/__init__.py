"""Exports of Ethereum: transactions, traces, token transfers, events of pools."""

"""Screening: how much of the balance of nodes came from a list, under every policy."""

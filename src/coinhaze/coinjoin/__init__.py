"""Interpretations of a single transaction: which inputs can have paid for which outputs."""

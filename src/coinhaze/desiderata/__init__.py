"""Desiderata for a measure of traceability, tested on small ledgers."""

"""Graphs as plain dictionaries, for comparing with what a person writes down."""

from __future__ import annotations

from coinhaze.graph import TransactionGraph


def edges(graph: TransactionGraph) -> dict[tuple[str, str], int]:
    """Give the amount of every edge."""
    table = graph.tables()["edges"].to_pylist()
    return {(e["from"], e["to"]): int(e["amount"]) for e in table}


def column(graph: TransactionGraph, name: str) -> dict[str, int]:
    """Give a column of the nodes where it is not zero."""
    table = graph.tables()["nodes"].to_pylist()
    return {n["node"]: int(n[name]) for n in table if int(n[name])}


def kinds(graph: TransactionGraph) -> dict[str, str]:
    """Give the kind of every node."""
    table = graph.tables()["nodes"].to_pylist()
    return {n["node"]: n["kind"] for n in table}

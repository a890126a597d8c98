"""Exact scores of any chain: elimination inside cycles, B streamed in tiles."""

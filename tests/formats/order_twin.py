"""Rows put in order the slow and obvious way, to check the fast one against."""

from __future__ import annotations

from itertools import groupby, pairwise

Keys = tuple[int, ...]


def direction(keys: list[Keys]) -> int:
    """1: oldest first; -1: newest first; 0: neither, or all at one place."""
    rises = any(before < after for before, after in pairwise(keys))
    falls = any(before > after for before, after in pairwise(keys))
    return rises - falls


def in_order(files: list[list[Keys]]) -> tuple[list[int], int]:
    """Give the rows, numbered through all files, in order, and how many of them nothing decides."""
    named: list[tuple[Keys, int, int]] = []  # key, file, row
    row = 0
    for number, keys in enumerate(files):
        named += [(key, number, row + k) for k, key in enumerate(keys)]
        row += len(keys)
    filled = [number for number, keys in enumerate(files) if keys]
    lined_up: list[tuple[Keys, int, int]] = []
    for number in sorted(filled, key=lambda k: (min(files[k]), max(files[k]))):
        here = [entry for entry in named if entry[1] == number]
        lined_up += here[::-1] if direction(files[number]) < 0 else here
    ordered = sorted(lined_up, key=lambda entry: entry[0])
    undecided = 0
    for _, group in groupby(ordered, key=lambda entry: entry[0]):
        tied = list(group)
        if not all(decided(files, a[1], b[1]) for a, b in pairwise(tied)):
            undecided += len(tied)
    return [row for _, _, row in ordered], undecided


def decided(files: list[list[Keys]], one: int, other: int) -> bool:
    """Tell whether it is known that a row of one file stands before a row of the other."""
    if one == other:
        return direction(files[one]) != 0
    a, b = files[one], files[other]
    return max(a) <= min(b) and min(a) < max(b)

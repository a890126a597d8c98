"""The paper's tables, to be shown beside ours: the week of 1 to 8 February 2021.

Source: Kelen and Seres, arXiv 2211.04259, the summary tables of its evaluation. Known errors in
them are listed in docs/paper-recomputed.md; the figures here are as printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A row as printed, where sizes are in thousands."""

    nodes: int
    edges: int
    bits_mean: float
    bits_median: float
    bits_variance: float
    bits_max: float
    steps_mean: float
    steps_median: float
    steps_variance: float
    sinks: int | None = None  # given in the text


# fmt: off
PUBLISHED = {
    ("bitcoin-week", "stationary"): Published(
        8_598_000, 12_801_000, 3.96, 4.07, 10.12, 11.82, 25.23, 23.56, 615.32, 4_237_925),
    ("zcash-week", "stationary"): Published(
        170_000, 748_000, 2.63, 0.89, 15.36, 15.70, 52.66, 56.61, 1755.94, 94_100),
    ("ethereum-week", "stationary"): Published(
        3_031_000, 5_863_000, 3.45, 3.94, 5.97, 10.86, 7.27, 2.0, 80.51, 1_768_192),
    ("dai-week", "stationary"): Published(
        46_000, 70_000, 2.60, 3.30, 1.98, 5.14, 26.39, 33.69, 414.49, 18_494),
    ("usdc-week", "stationary"): Published(
        146_000, 234_000, 3.32, 4.10, 2.91, 8.12, 16.40, 18.35, 74.13, 47_888),
    ("bitcoin-week", "temporal"): Published(
        11_441_000, 13_679_000, 3.97, 1.18, 4.81, 10.34, 20.64, 12.0, 632.21),
    ("zcash-week", "temporal"): Published(
        946_000, 1_042_000, 1.02, 0.0, 11.47, 15.94, 533.96, 286.0, 394_000.0),
    ("dai-week", "temporal"): Published(
        172_000, 252_000, 3.13, 3.23, 4.00, 8.64, 37.39, 23.80, 1489.19),
    ("usdc-week", "temporal"): Published(
        508_000, 723_000, 3.62, 3.68, 3.83, 9.48, 39.80, 27.87, 1577.23),
}
# Without what entered the pools before the week.
UNMODIFIED = {
    ("zcash-week", "stationary"): Published(
        170_000, 748_000, 1.40, 0.68, 1.99, math.nan, 52.66, 56.61, 1755.94, 94_100),
}
# fmt: on

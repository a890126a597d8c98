"""Compare two privacy technologies: the same people, coins and payments under each of them.

Both run on the same seeds, so not only are gains paired with what would have been without; the two
technologies are a pair as well, and the band of their difference is narrow after few economies.
"""

from __future__ import annotations

import argparse

from coinhaze.lab.lab import Point, lab
from coinhaze.measures.bands import paired_band

SHARE = 0.25  # of people adopt


def tell(name: str, point: Point) -> None:
    gain, others = point.gain, point.others_gain
    print(
        f"{name}: adopters gain {gain.mean:.2f} ± {gain.half:.2f} bits, others {others.mean:.2f}, "
        f"for {point.trials.fees.mean():.3%} of the money moved"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["wasabi", "joinmarket"])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--payments", type=int, default=300)
    options = parser.parse_args()
    one, two = options.names
    size = {"seeds": options.seeds, "people": options.people, "payments": options.payments}
    first, second = (lab(name, values=[SHARE], **size).points[0] for name in (one, two))
    tell(one, first)
    tell(two, second)
    difference = paired_band(first.trials.bits, second.trials.bits)
    print(f"{one} less {two}: {difference.low:.2f} to {difference.high:.2f} bits")


if __name__ == "__main__":
    main()

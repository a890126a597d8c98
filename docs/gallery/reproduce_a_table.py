"""Reproduce the paper's tables: made-up weeks at any size, scored both ways, one folder of results.

`--size 1` is the paper's size and takes a while; everything printed can be made again from the
score files in the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from coinhaze.compare.ledgers import ComparedLedger
from coinhaze.compare.report import write_manifest, write_report
from coinhaze.compare.run import score_ledgers
from coinhaze.report.score_files import read_score_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weeks", nargs="*", default=["dai", "usdc"])
    parser.add_argument("--size", type=float, default=0.02)
    parser.add_argument("-o", "--output", type=Path, default=Path("reproduced"))
    options = parser.parse_args()
    weeks = [ComparedLedger.of(f"week:{name}", size=options.size) for name in options.weeks]
    options.output.mkdir(exist_ok=True)
    scores = score_ledgers(weeks, options.output)
    write_manifest(options.output, scores, published=True)
    write_report(options.output, figures=False)
    for path in scores:
        row = read_score_file(path)
        print(f"{path.stem}: {row.bits.mean():.4f} bits over {len(row.bits)} sinks")


if __name__ == "__main__":
    main()

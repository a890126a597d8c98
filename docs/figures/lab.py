"""Draw docs/lab.png, and print the table of docs/privacy-technologies.md: all technologies."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from coinhaze.lab.lab import lab_all
from coinhaze.lab.report import lab_grids, save_lab
from coinhaze.options import SimulateOptions
from coinhaze.report.files import write_whole


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=SimulateOptions.seeds)
    sweeps = lab_all(seeds=parser.parse_args().seeds)
    with tempfile.TemporaryDirectory() as folder:
        png = save_lab(sweeps, Path(folder)).paths[0].read_bytes()
    write_whole(Path(__file__).parents[1] / "lab.png", lambda path: path.write_bytes(png))
    for grid in lab_grids(sweeps):
        print(grid.markdown())


if __name__ == "__main__":
    main()

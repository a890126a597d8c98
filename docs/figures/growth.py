"""Draw docs/growth.png: bits along walks forward on simulated weeks, and print the figures."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

from coinhaze.growth.growth import Growth, growth
from coinhaze.growth.plots import plot_growth
from coinhaze.report.figures import drawing, save_picture
from coinhaze.simulate import simulate_week

WEEKS = (("dai-week", 0.2), ("ethereum-week", 0.02))
TIMES = ("stationary", "temporal")
SHOWN = (0, 1, 2, 3, 5, 10, 20)


def tell(name: str, size: float, time: str, found: Growth) -> None:
    print(f"{name}, size {size:g}, {time}: {found.how}; {found.certainty}")
    for made in SHOWN:
        q = found.quantiles[:, made]
        print(
            f"  {made:>2} payments: {found.share[made]:7.2%} going, "
            f"mean {found.bits_mean[made]:.3f} (half between {q[1]:.2f} and {q[3]:.2f}), "
            f"held {found.bits_held[made]:.3f}"
        )


def main(path: Path) -> None:
    mpl.use("agg")
    with drawing() as plt:
        figure, axes = plt.subplots(2, 2, figsize=(6.8, 4.6), layout="constrained", sharex=True)
        for row, (name, size) in zip(axes, WEEKS, strict=True):
            ledger = simulate_week(name, size=size)
            for ax, time in zip(row, TIMES, strict=True):
                found = growth(ledger, length=20, mint="one", time=time)
                tell(name, size, time, found)
                plot_growth(found.to_arrow(), ax=ax)
                ax.set_title(f"{name}, {time}")
                legend = ax.get_legend_handles_labels()
                ax.get_legend().remove()
        for ax in axes[0]:
            ax.set_xlabel("")
        figure.legend(*legend, loc="outside lower left", ncols=2)
    save_picture(figure, path)
    print(f"wrote {path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "growth.png")

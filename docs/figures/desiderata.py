"""Draw docs/desiderata.png: one owner moves one coin about, and what measures say of the result."""

from __future__ import annotations

from pathlib import Path

from coinhaze.desiderata import APPROACHES
from coinhaze.report.figures import BLUE, GREY, ORANGE, pyplot
from coinhaze.simulate.small_worlds import UNIT, Coins, World

# Who is made of whom: new coins, and the coins spent for them. Half a unit is the smallest.
MOVES = (
    (("v2", "v3"), ("v1",)),
    (("v4", "v5", "v6"), ("v2",)),
    (("v7",), ("v3", "v4")),
    (("v8", "v9"), ("v5", "v6")),
    (("v10",), ("v7", "v8")),
    (("v11",), ("v9", "v10")),
)
PLACES = {
    "v1": (0, 0), "v2": (1, 0.6), "v3": (1, -0.9), "v4": (2, -0.2), "v5": (2, 0.6),
    "v6": (2, 1.4), "v7": (3, -0.7), "v8": (3, 0.6), "v9": (3, 1.4), "v10": (4, -0.1),
    "v11": (5, 0.5),
}  # fmt: skip
SHOWN = ("bits", "k-anonymity", "boltzmann")


def tampering() -> tuple[World, dict[str, str]]:
    """One owner's coin of four origins goes through six transactions with no other money."""
    coins = Coins()
    origins = [coins.mine(share * UNIT) for share in (1, 1, 2, 1)]
    name = {"v1": coins.spend(origins, [(5 * UNIT, "own")])[0]}
    for made, spent in MOVES:
        used = [name[v] for v in spent]
        share, rest = divmod(coins.worth(used), len(made))
        paid = [(share + (rest if k == 0 else 0), "own") for k in range(len(made))]
        name |= dict(zip(made, coins.spend(used, paid), strict=True))
    return coins.world([name[v] for v in PLACES]), name


def draw(path: Path) -> None:
    plt = pyplot()
    world, _ = tampering()
    values = {what: APPROACHES[what].measure(world).tolist() for what in SHOWN}
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained")
    for ax, what in zip(axes, SHOWN, strict=True):
        said = dict(zip(PLACES, values[what], strict=True))
        for made, spent in MOVES:
            for old in spent:
                for new in made:
                    (x, y), (to_x, to_y) = PLACES[old], PLACES[new]
                    ax.plot([x, to_x], [y, to_y], color=GREY, linewidth=0.8, zorder=1)
        for v, (x, y) in PLACES.items():
            raised = said[v] > said["v1"] + 1e-9
            colour = ORANGE if raised else BLUE
            ax.scatter([x], [y], s=420, color="white", edgecolors=colour, linewidths=1.6, zorder=2)
            ax.text(
                x, y, f"{said[v]:.3g}", ha="center", va="center", fontsize=8, color=colour, zorder=3
            )
            ax.text(x, y - 0.42, v, ha="center", va="center", fontsize=7, color=GREY)
        ax.set_title(what, fontsize=10)
        ax.set_xlim(-0.5, 5.5)
        ax.set_ylim(-1.6, 2.0)
        ax.axis("off")
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).parents[1] / "desiderata.png")

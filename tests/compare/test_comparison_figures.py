"""Figures and the page of a comparison: what is drawn is what was measured."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

from coinhaze.compare.figures import draw_comparison
from coinhaze.compare.page import comparison_page, story
from coinhaze.compare.rows import comparison_rows
from coinhaze.compare.tables import comparison_grids
from coinhaze.growth.plots import plot_growth, plot_growths
from coinhaze.report import plots as plots
from coinhaze.report.figures import COLOURS, Figure, line_of, short_labels
from coinhaze.report.score_files import ScoreFile

mpl.use("agg")

HOSTILE = (
    "$\\frac{a}{b}$ <script>alert(1)</script> -->",
    "a name so long that nobody would ever read it to its very end, part 1",
    "a name so long that nobody would ever read it to its very end, part 2",
    "\u202egnp.exe\u2067 漢字 \n\n",
    "_hidden",
    "שלום",
)


def scored(
    name: str = "made", time: str = "stationary", n: int = 400, seed: int = 1, **more: Any
) -> ScoreFile:
    chance = np.random.default_rng(seed)
    bits = np.where(chance.random(n) < 0.3, 0.0, chance.gamma(4.0, 1.0, n))
    columns = {
        "bits": bits,
        "bits_low": bits,
        "bits_high": bits,
        "steps": 2.0 + bits * chance.exponential(9.0, n),
        "balance": chance.exponential(5.0, n),
        "sources": np.full(n, 9.0),
        "top_probability": 2.0 ** -(bits * chance.uniform(0.2, 1.0, n)),
        "burnt": np.zeros(n, dtype=np.bool_),
    }
    about = {
        "method": "sweep", "nodes": 3 * n, "edges": 4 * n, "draw_means": None,
        "software": "coinhaze", "inputs": [{"file": "made.csv"}], "command": "coinhaze compare x",
    }  # fmt: skip
    return ScoreFile(name=name, time=time, view="account", about=about, **columns | more)


def both(name: str, **more: Any) -> list[ScoreFile]:
    return [scored(name, time, **more) for time in ("stationary", "temporal")]


def grown(top: float = 3.0) -> pa.Table:
    made = np.arange(12)
    mean = top * (1 - 0.5**made)
    bands = {f"bits_{q:02d}": mean * (0.5 + q / 100) for q in (5, 25, 50, 75, 95)}
    return pa.table(
        {"payments": made, "share": 0.5**made, "bits_mean": mean, "bits_held": mean / 2} | bands
    )


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    mpl.pyplot.close("all")


@pytest.mark.parametrize("n", [1, 10, 50_000])
def test_running_shares_are_the_shares_of_coins_at_or_below(n: int) -> None:
    files = [scored("one", n=n), scored("two", n=n, seed=2)]
    for plot, column in (
        (plots.plot_bits_shares, "bits"),
        (plots.plot_steps_shares, "steps"),
        (plots.plot_top_shares, "top_probability"),
    ):
        axes = plot(files)
        assert len(axes.get_lines()) == 2
        for file, line in zip(files, axes.get_lines(), strict=True):
            values = getattr(file, column)
            across, up = np.array(line.get_xdata()), np.array(line.get_ydata())
            assert len(across) <= 2 * plots.POINTS + 2
            assert up[0] == 0.0
            assert up[-1] == 100.0
            # The first point begins the line, the last carries it on to the others' end.
            for x, y in list(zip(across, up, strict=True))[1:-1]:
                assert y == pytest.approx(100 * np.mean(values <= x), abs=1e-9)


def test_outlines_hold_every_coin_once() -> None:
    file = scored(n=3000)
    axes = plots.plot_bits([file])
    heights, edges, _ = axes.patches[0].get_data()
    certain = file.bits_high < 1e-6
    assert heights == pytest.approx(100 * np.histogram(file.bits[~certain], edges)[0] / 3000)
    assert heights.sum() == pytest.approx(100 * np.mean(~certain))
    assert (
        f"{100 * np.mean(certain):.0f} % at 0 bits" in axes.get_legend().get_texts()[0].get_text()
    )
    heights, edges, _ = plots.plot_steps([file]).patches[0].get_data()
    assert heights == pytest.approx(100 * np.histogram(file.steps, edges)[0] / 3000)
    assert heights.sum() == pytest.approx(100.0)


def test_estimates_that_happen_to_be_nought_are_not_taken_for_proofs() -> None:
    bits = np.array([0.0, 0.0, 1.0])
    file = scored(n=3, bits=bits, bits_low=bits * 0, bits_high=np.array([0.0, 5.0, 5.0]))
    axes = plots.plot_bits([file])
    assert "33 % at 0 bits" in axes.get_legend().get_texts()[0].get_text()
    assert axes.patches[0].get_data().values.sum() == pytest.approx(200 / 3)


def test_few_coins_are_dots_and_many_are_counted_in_cells() -> None:
    few, many = scored(n=50), scored(n=plots.MANY + 1)
    dots = plots.plot_bits_against_steps(few).collections[0].get_offsets()
    assert np.array(dots) == pytest.approx(np.stack([few.steps, few.bits], axis=1))
    axes = plots.plot_bits_against_steps(many)
    cells = axes.collections[0].get_array()
    assert cells.sum() == plots.MANY + 1
    # The lowest row is that of one origin.
    assert np.ma.filled(cells, 0).reshape(41, -1)[0].sum() == np.sum(many.bits == 0)


def test_burns_and_coins_without_an_answer_are_left_out() -> None:
    bits = np.array([0.0, 1.0, 2.0, np.nan])
    burnt = np.array([False, False, True, False])
    file = scored(n=4, bits=bits, bits_low=bits, bits_high=bits, burnt=burnt)
    line = plots.plot_bits_shares([file]).get_lines()[0]
    assert list(line.get_xdata())[1:-1] == [0.0, 1.0]
    assert list(line.get_ydata())[1:-1] == [50.0, 100.0]


def test_exposures_are_drawn_where_they_are_known() -> None:
    known = scored("known", exposure=np.linspace(0, 1, 400))
    axes = plots.plot_exposures([scored("unknown"), known])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["known"]


def test_growth_is_drawn_as_far_as_one_walk_in_a_hundred() -> None:
    table = grown()
    line = plot_growth(table).get_lines()[0]
    assert len(line.get_xdata()) == 7
    assert line.get_ydata() == pytest.approx(table["bits_mean"].to_numpy()[:7])
    lines = plot_growths({"a": table, "b": grown(5.0)}).get_lines()
    assert lines[1].get_ydata()[-1] == pytest.approx(5 * (1 - 0.5**6))


FILES = [scored("one", "stationary", n=3000), scored("two", "temporal", n=10, seed=2,
         exposure=np.full(10, 0.5))]  # fmt: skip
GROWTH = {("one", "stationary"): grown(), ("two", "temporal"): grown(2.0)}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Figure]:
    """Draw everything once."""
    return draw_comparison(FILES, tmp_path_factory.mktemp("figures"), growth=GROWTH)


def test_every_figure_is_drawn_in_small_files_with_a_caption(drawn: list[Figure]) -> None:
    names = [figure.name for figure in drawn]
    assert names == [
        "bits-shares", "bits", "steps-shares", "steps", "bits-against-steps", "top-shares",
        "exposure", "growth",
    ]  # fmt: skip
    folder = drawn[0].paths[0].parent
    suffixes = ("png", "svg", "pdf")
    written = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert written.keys() == {"captions.txt", *(f"{n}.{s}" for n in names for s in suffixes)}
    assert max(written.values()) < 500_000
    captions = (folder / "captions.txt").read_text()
    for figure in drawn[:-1]:
        assert figure.caption in captions
        assert "two (made.csv): temporal 10 accounts by sweep" in figure.measured
        assert ("3,000 accounts" in figure.measured) is (figure.name != "exposure")
    assert "Not known, so not drawn: one, stationary." in drawn[-2].measured


def test_the_same_files_make_the_same_bytes(drawn: list[Figure], tmp_path: Path) -> None:
    some = ("bits", "bits-against-steps", "growth")
    mpl.rcParams["font.size"] = 20  # somebody's own settings
    try:
        again = draw_comparison(FILES, tmp_path, growth=GROWTH, only=some)
    finally:
        mpl.rcdefaults()
    before = [figure for figure in drawn if figure.name in some]
    for first, second in zip(before, again, strict=True):
        for one, other in zip(first.paths, second.paths, strict=True):
            assert one.read_bytes() == other.read_bytes(), one.name


def test_a_ledger_keeps_its_look_in_every_panel(tmp_path: Path) -> None:
    files = [*both("one"), scored("two", "temporal"), scored("three", "temporal")]
    looks = plots.looks_of([file.name for file in files])
    axes = plots.plot_bits_shares(files[1:], looks=looks)
    assert [line.get_color() for line in axes.get_lines()] == list(COLOURS[:3])
    assert len({line_of(k) for k in range(30)}) == 30


def test_hostile_names_harm_no_figure_and_no_page(tmp_path: Path) -> None:
    files = [scored(name, seed=k, n=20 * k) for k, name in enumerate(HOSTILE)]
    mine = draw_comparison(files, tmp_path, only=["bits-shares", "bits-against-steps"])
    labels = short_labels(HOSTILE)
    assert len(set(labels)) == len(HOSTILE)
    assert max(map(len, labels)) <= 32
    assert not any("\n" in label or "\u202e" in label for label in labels)
    axes = plots.plot_bits_shares(files)
    assert len(axes.get_legend().get_texts()) == len(files)
    html = made_page(files, mine)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def marked_files() -> list[ScoreFile]:
    """Two ledgers, the bits of the first of which are lower bounds."""
    bound = np.arange(400) % 2 == 0
    return [scored("raw", lower_bound=bound), scored("known")]


def test_lower_bounds_are_marked_wherever_bits_are_drawn() -> None:
    def legend(plot: Any) -> list[str]:
        return [t.get_text() for t in plot(marked_files()).get_legend().get_texts()]

    assert legend(plots.plot_bits_shares) == ["raw (≥)", "known"]
    # Half of those at 0 bits have at least 0: they are not proven to have one origin.
    zeros = [int(file.one_origin.sum()) for file in marked_files()]
    assert zeros[0] < zeros[1]
    assert legend(plots.plot_bits) == [
        f"raw (≥): {zeros[0] / 4:.0f} % at 0 bits", f"known: {zeros[1] / 4:.0f} % at 0 bits",
    ]  # fmt: skip
    # A source that stands for several coins may be less likely than it seems; steps are known.
    assert legend(plots.plot_top_shares) == ["raw (≤)", "known"]
    assert legend(plots.plot_steps_shares) == ["raw", "known"]
    about = {b"coinhaze": b'{"lower_bounds": 3}'}
    growths = {"raw": grown().replace_schema_metadata(about), "known": grown()}
    texts = plot_growths(growths).get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["raw (≥)", "known"]


def test_captions_and_the_page_explain_marks_and_carry_notes(tmp_path: Path) -> None:
    files = marked_files()
    notes = [f"note {k} of <many>: {'words that go on ' * 12}" for k in range(8)]
    files[0] = scored("raw", lower_bound=files[0].lower_bound)
    told = dict(files[0].about) | {"notes": notes}
    files[0] = ScoreFile(**{**vars(files[0]), "about": told})
    figures = draw_comparison(files, tmp_path, only=["bits-shares", "steps", "bits-against-steps"])
    by_name = {figure.name: figure for figure in figures}
    assert "(≥): some bits of this ledger are lower bounds" in by_name["bits-shares"].caption
    assert "(≥)" in by_name["bits-against-steps"].caption
    assert "≥" not in by_name["steps"].caption
    for figure in figures:
        assert all(f"raw: {note}" in figure.caption for note in notes)
    html = made_page(files, figures)
    assert html.count("<li>raw: note ") == 8
    assert "of &lt;many&gt;" in html
    assert "<many>" not in html


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    empty = scored(n=0)
    assert draw_comparison([empty], tmp_path) == []
    assert draw_comparison([], tmp_path) == []
    for plot in (plots.plot_bits, plots.plot_steps, plots.plot_bits_shares):
        assert plot([empty]).get_ylabel()
    assert "<h1>" in made_page([empty], [])


def made_page(files: list[ScoreFile], drawn: list[Any]) -> str:
    grids = [
        grid
        for time in ("stationary", "temporal")
        for grid in comparison_grids(comparison_rows(files, time), time)
    ]
    return comparison_page(files, drawn, grids)


class Outside(HTMLParser):
    """Whatever a page would fetch or run, and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and not (value or "").startswith(
                ("#", "data:image/png;base64,")
            ):
                self.fetched.append(f"{tag} {name}={value}")


def test_the_page_stands_alone_and_tells_what_the_files_say(drawn: list[Figure]) -> None:
    html = made_page(FILES, drawn)
    outside = Outside()
    outside.feed(html)
    assert outside.fetched == []
    assert not outside.tags & {"script", "iframe", "object", "link", "img"}
    assert "default-src 'none'" in html
    assert html.count("<figure") == len(drawn)
    for figure in drawn:
        assert figure.says.split(".")[0] in html
    # Drawings take the page's colours, so that they can be read on a dark ground too.
    assert "stroke: var(--series-0)" in html
    assert "fill: #ffffff" not in html
    assert not re.search(r'href="#(?!bits|steps|top|growth|exposure)', html)
    assert "coinhaze compare --again -o REPORT" in html
    for line in story(FILES):
        assert line.replace("'", "&#x27;") in html


def test_the_story_is_computed_from_the_files() -> None:
    def flat(
        name: str, time: str, bits: list[float], top: float, balance: list[float]
    ) -> ScoreFile:
        values = np.array(bits)
        n = len(bits)
        return scored(
            name, time, n=n, bits=values, bits_low=values, bits_high=values,
            top_probability=np.full(n, top), balance=np.array(balance),
        )  # fmt: skip

    files = [
        flat("many", "stationary", [0.0, 4.0, 4.0], 0.6, [1, 1, 1]),
        flat("few", "stationary", [0.0, 0.0, 1.0, 3.0], 0.2, [1, 1, 1, 9]),
        flat("many", "temporal", [0.0, 2.0, 3.0], 0.2, [1, 1, 1]),
        flat("few", "temporal", [0.0, 2.0, 1.0, 3.0], 0.2, [1, 1, 1, 1]),
    ]
    lines = " ".join(story(files, growth={("few", "temporal"): grown()}))
    assert "on many, 4.00 bits (as among 16 origins), and fewest on few, 0.50 bits" in lines
    assert "lowers mean bits of many (2.67 to 1.67) and raises those of few (1.00 to 1.50)" in lines
    assert "50.0 % of coins on few are proven to have one origin, 0 bits, 33.3 % on many" in lines
    assert "100.0 % on many (stationary) have one source" in lines
    assert "On few (stationary) most money lies in coins with more bits" in lines
    assert "the mean is 1.00 coin by coin and 2.33 by value" in lines
    assert "most on few (temporal): 2.95 on average after 6 payments." in lines


def test_the_story_of_one_ledger_compares_it_with_none() -> None:
    bits = np.full(5, 2.0)
    lines = story([scored("one", n=5, bits=bits, bits_low=bits, bits_high=bits)])
    assert "the median coin of one has 2.00 bits (as among 4.0 origins)." in lines[0]
    assert "hardly any coin is proven" in lines[1]


@pytest.mark.long
def test_four_million_coins_make_small_figures(tmp_path: Path) -> None:
    for figure in draw_comparison(both("large", n=4_000_000), tmp_path):
        assert all(path.stat().st_size < 500_000 for path in figure.paths)

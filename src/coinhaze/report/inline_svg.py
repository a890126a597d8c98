"""Figures as part of a page: with its colours, and ids that do not clash with others."""

from __future__ import annotations

import re

from coinhaze.report.drawing import COLOURS, INK, LINE, SOFT, Figure
from coinhaze.report.page import Html, escape

# The same hues for a dark background, lighter, to preserve the contrast of lines.
_DARK = ("#5aaee8", "#ff9152", "#3cc79b", "#e6a8cb", "#9bd6f7", "#f4bd52", "#e6ebef")
_NAMES = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    "#ffffff": "none",
    **{colour: f"var(--series-{k})" for k, colour in enumerate(COLOURS)},
}


def _variables(colours: tuple[str, ...]) -> str:
    return " ".join(f"--series-{k}: {colour};" for k, colour in enumerate(colours))


FIGURE_STYLE = f"""
:root {{ {_variables(COLOURS)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}
.figures {{ display: grid; gap: 1.5rem 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }}
figure {{ margin: 1rem 0; min-width: 0; }}
figure svg {{ width: 100%; height: auto; max-width: 34rem; display: block; }}
figure.broad {{ overflow-x: auto; }}
figure.broad svg {{ max-width: 100%; min-width: 38rem; }}
.wide td, .wide th {{ overflow-wrap: break-word; max-width: 18rem; }}
summary {{ cursor: pointer; }}
figcaption {{ color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }}
figcaption b {{ color: var(--ink); }}
.lead {{ font-size: 1.1rem; max-width: 44rem; }}
ul {{ max-width: 44rem; padding-left: 1.2rem; }} li {{ margin: .4rem 0; }}
code {{ overflow-wrap: anywhere; }} pre {{ overflow-x: auto; }}
"""


def inline_figure(figure: Figure) -> Html:
    """Return a figure as part of a page, with its title and caption below.

    Ids inside are prefixed with the figure's own name, since a page has several figures; colours
    become the page's, which differ on a dark background.
    """
    svg = figure.svg
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    mark = re.sub(r"\W+", "-", figure.name)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', svg)
    svg = re.sub(r'href="#', f'href="#{mark}-', svg)
    svg = re.sub(r"url\(#", f"url(#{mark}-", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda m: _NAMES.get(m.group(), m.group()), svg)
    # Two panels side by side need the full width of the page.
    width = float(re.findall(r'viewBox="0 0 ([\d.]+) ', svg)[0])
    svg = re.sub(r'^<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'^<svg ([^>]*?)\bwidth="[^"]*"', r"<svg \1", svg, count=1)
    label = f'role="img" aria-label="{escape(figure.title)}"'
    svg = svg.replace("<svg ", f"<svg {label} ", 1)
    kind = ' class="broad"' if width > 300 else ""
    words = f"<b>{escape(figure.title)}.</b> {escape(figure.says)}"
    words += f"<details><summary>What was measured</summary>{escape(figure.measured)}</details>"
    return Html(f"<figure{kind}>\n{svg}\n<figcaption>{words}</figcaption></figure>\n")

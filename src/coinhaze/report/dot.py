"""Flow by hop in the DOT language of Graphviz."""

from __future__ import annotations

from coinhaze.report.layers import Layers


def quote(text: str) -> str:
    r"""Write text as a quoted word that stands for itself.

    >>> print(quote('a "b" \\N'))
    "a \"b\" \\N"
    """
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"{plain}"'


def dot(layers: Layers, *, title: str) -> str:
    """Return boxes as nodes in ranks, the oldest on the left, and bands as edges."""
    lines = [f"digraph {quote(title)} {{", "  rankdir=LR;", "  node [shape=box];"]
    for hop, boxes in enumerate(layers.boxes):
        lines.append("  { rank=same;")
        for k, box in enumerate(boxes):
            style = ", style=dashed" if box.other else ", style=bold" if box.ended > 0 else ""
            full = "" if box.other else f", tooltip={quote(box.name)}"
            lines.append(f'    "h{hop}_{k}" [label={quote(box.words())}{full}{style}];')
        lines.append("  }")
    for band in layers.bands:
        ends = f'"h{band.hop + 1}_{band.before}" -> "h{band.hop}_{band.box}"'
        wide = f"{0.5 + 7.5 * band.share:.2f}"
        lines.append(f"  {ends} [label={quote(f'{band.share:.2%}')}, penwidth={wide}];")
    return "\n".join([*lines, "}", ""])

"""A self-contained page to share: one HTML file, no script, nothing fetched, all text escaped."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

_STYLE = """
:root { color-scheme: light dark; --ink: #1b242c; --paper: #fff; --soft: #55636f; --line: #d5dce2;
  --flow: #0b5cad; --source: #b5420a; --other: #8a97a3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebef; --paper: #14191e; --soft: #a3afba;
  --line: #35404a; --flow: #6cb0f2; --source: #f09a5f; --other: #75828e; } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 62rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: pre; }
.warning { border-left: 3px solid var(--source); padding-left: .7rem; }
svg { max-width: none; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); paint-order: stroke;
  stroke: var(--paper); stroke-width: 3px; }
.annex { border-top: 1px solid var(--line); margin-top: 3rem; }
@page { margin: 16mm 15mm; }
@media print {
  :root { color-scheme: light; --ink: #000; --paper: #fff; --soft: #333; --line: #999; }
  body { margin: 0; padding: 0; max-width: none; font-size: 9.5pt; line-height: 1.35; }
  h1 { font-size: 14pt; margin: 0 0 2mm; }
  h2 { font-size: 11pt; margin: 4mm 0 1mm; break-after: avoid; }
  p { margin: 1mm 0; orphans: 3; widows: 3; }
  table { font-size: 8.5pt; width: 100%; }
  th, td { padding: .6mm 1.5mm; }
  th.number, td.number { white-space: pre-line; }
  tr { break-inside: avoid; }
  .wide { overflow: visible; }
  .annex { break-before: page; border-top: 0; margin-top: 0; }
}
"""
# No script runs and nothing is fetched, whatever a name contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is already markup: made by the functions here and in `sankey`, never elsewhere."""

    __slots__ = ()

    def __html__(self) -> str:
        """Tell templates that it is escaped."""
        return self


def escape(value: object) -> Html:
    """Escape text for a page; what is already markup stays as it is.

    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def paragraph(text: object, *, warning: bool = False) -> Html:
    """Return a paragraph; a warning has a bar beside it."""
    kind = ' class="warning"' if warning else ""
    return Html(f"<p{kind}>{escape(text)}</p>\n")


def section(title: str, *parts: object) -> Html:
    """Return parts below a heading; a part that is not markup becomes a paragraph."""
    body = "".join(p if isinstance(p, Html) else paragraph(p) for p in parts)
    return Html(f"<h2>{escape(title)}</h2>\n{body}")


def division(kind: str, *parts: Html) -> Html:
    """Return parts that are styled together."""
    return Html(f'<div class="{escape(kind)}">\n{"".join(parts)}</div>\n')


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Collection[int] = ()
) -> Html:
    """Return a table; columns listed in `right`, by number, are aligned right.

    >>> "<td><bdi>&lt;a&gt;</bdi></td>" in table(["name"], [["<a>"]])
    True
    """
    kinds = [' class="number"' if k in right else "" for k in range(len(columns))]
    head = "".join(f"<th{kind}>{escape(c)}</th>" for kind, c in zip(kinds, columns, strict=True))
    lines = [
        # A right-to-left name must not reorder the cells beside it.
        "".join(
            f"<td{kind}><bdi>{escape(v)}</bdi></td>" for kind, v in zip(kinds, row, strict=True)
        )
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return Html(f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>\n')


def page(title: str, sections: Iterable[object], *, style: str = "", pictures: bool = False) -> str:
    """Return a whole page: a title, then sections; what is not markup becomes a paragraph.

    `style` comes after the page's own; `pictures` allows images embedded in the page itself.

    >>> page("<x>", [section("Origins", "1 < 2")]).count("&lt;")
    3
    """
    body = "".join(s if isinstance(s, Html) else paragraph(s) for s in sections)
    policy = f"{_POLICY}; img-src data:" if pictures else _POLICY
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}</body>\n</html>\n"
    )

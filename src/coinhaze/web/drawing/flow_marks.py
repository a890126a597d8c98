"""Boxes of a flow, drawn: a bar, its words, what is hit, and what a reader who cannot see hears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coinhaze.explore.describe import share_words
from coinhaze.explore.models import FlowNode
from coinhaze.report.drawing.layout import Stop
from coinhaze.report.drawing.svg import BOLD, SPAN, fit_text, fits, max_letters, percent, text_width
from coinhaze.report.page import Html, escape

BAR = 10.0  # pixels across a bar
SIZE, SMALL = 12.5, 12.0  # of letters
FLAG, TURN = "⚑ ", "↻ "  # on a list; also elsewhere in the drawing
THROUGH = ", through "  # behind an origin whose money passed a listed name
HIT = 24.0  # the least that can be pointed at
STRIPE = 4.0  # between the lines of a bundle
MIN_WIDE, MIN_NARROW = 998.0, 268.0  # pixels that a drawing has at least
SOLE_LINE = 30.0  # height under which share and name share a line


@dataclass(frozen=True)
class Marks:
    """Where a drawing puts things: pixels above, columns, the step between them, shares or not."""

    head: float
    along: Callable[[int], float]
    step: float  # share of the width
    shares: bool
    noun: str = "coin"  # what the money is now
    forward: bool = False  # where it went


# Where money went has the colours of where it came from: what holds it, and what is spent for good.
_COLOURS = {
    "unspent": "earlier", "balance": "earlier", "fee": "mined", "burned": "mined",
    "unspendable": "mined",
}  # fmt: skip


def kind_of(node: FlowNode) -> str:
    """Give the class a box is coloured by."""
    return "other" if node.folded else colour_of(node.kind, labelled=node.label is not None)


def colour_of(kind: str, *, labelled: bool) -> str:
    """Give the class a kind is coloured by.

    >>> colour_of("unspent", labelled=False), colour_of("unspent", labelled=True)
    ('earlier', 'service')
    """
    return "service" if labelled and kind in ("unspent", "balance") else _COLOURS.get(kind, kind)


def node_words(node: FlowNode) -> str:
    """Give a box's name as it is drawn; a listed one has a flag."""
    words = node.label or node.words
    if node.folded and not node.count:
        words = f"Further {'on' if ' on' in words else 'back'}"
    return f"{FLAG}{words}" if node.kind == "listed" and not node.folded else words


def node_tag(node: FlowNode) -> str:
    """Say at which other hops the same party is.

    >>> node_tag(FlowNode(id="a", column=1, kind="coin", name="a", words="a", share=1, also=(2, 4)))
    '↻ also at hop 2, 4'
    """
    return f"{TURN}also at hop {', '.join(map(str, node.also))}" if node.also else ""


def heard(node: FlowNode, seen: str, marks: Marks, *, opens: bool) -> str:
    """Say a box in words, those that are seen first."""
    shares = marks.shares
    whole = node_words(node) + (f" {share_words(node.share)}" if shares else "")
    parts = [whole if whole.startswith(seen) else f"{seen}, {whole}"]
    if shares:
        parts[0] += f" of this {marks.noun}"
    if node.listed > 0 and node.kind != "listed" and shares:
        met = "passed" if marks.forward else "from"
        parts.append(f"{share_words(node.listed)} {met} listed addresses")
    if node.name and node.name != node.words:
        parts.append(node.name)
    if node.also:
        parts.append(node_tag(node))
    if opens:
        parts.append("Enter shows 8 more" if node.opens else "Enter opens it")
    return " · ".join(parts)


def wide_node(node: FlowNode, box: Stop, marks: Marks, href: str | None, *, last: int) -> Html:
    """Draw a box of a wide drawing: origins have their words on the left, others on the right.

    Forward, all have them on the right.
    """
    y, tall = box.at + marks.head, max(box.width, 1.0)
    middle = tall / 2
    hit = max(tall, HIT)
    bar = (
        f'<rect class="hit" x="-12" y="{middle - hit / 2:.1f}" width="24" height="{hit:.1f}"/>'
        f'<rect class="bar" x="{-BAR / 2}" y="0" width="{BAR}" height="{tall:.1f}" rx="1.5"/>'
    )
    if node.folded and node.column == last and node.count > 1:
        bar += _stripes(node.count, tall)
    if node.column == 0:
        seen, words = "", ""
    elif node.column == last:
        at = marks.along(last)
        room = MIN_WIDE * (SPAN - at if marks.forward else at) / SPAN - BAR
        side, anchor = (1, "start") if marks.forward else (-1, "end")
        seen, words = _line(node, side * (BAR / 2 + 6), middle + 4.5, room, marks, anchor=anchor)
    else:
        room = MIN_WIDE * marks.step - 2 * BAR
        seen, words = _beside(node, tall, room, marks)
    inner = (
        f'<svg x="{percent(marks.along(node.column))}" y="{y:.1f}" overflow="visible">'
        f"{bar}{words}</svg>"
    )
    return _wrap(node, inner, seen, marks, href)


def _stripes(count: int, tall: float) -> str:
    """Cut the bar of a bundle into its origins, as far as lines can be distinguished."""
    parts = min(count, int(tall / STRIPE))
    lines = "".join(f"M{-BAR / 2} {tall * k / parts:.1f}h{BAR}" for k in range(1, parts))
    return f'<path class="stripes" d="{lines}"/>' if lines else ""


def narrow_node(
    node: FlowNode, box: Stop, marks: Marks, href: str | None, *, letter: str | None
) -> Html:
    """Draw a box of a narrow drawing: words below the bar as far as they fit, or its letter."""
    y = marks.along(node.column)
    left, width = box.at, max(box.width, 3.0)
    centre = percent(left + width / 2)
    parts = [
        f'<rect class="hit" x="{percent(left)}" y="{y - 8:.1f}" width="{percent(width)}" '
        f'height="{HIT:.0f}"/>',
        f'<rect class="bar" x="{percent(left)}" y="{y:.1f}" width="{percent(width)}" '
        f'height="9" rx="1.5"/>',
    ]
    seen = letter or ""
    if letter is not None:
        parts.append(
            f'<text class="key" x="{centre}" y="{y + 24:.1f}" text-anchor="middle">'
            f"{escape(letter)}</text>"
        )
    elif node.column > 0:
        seen = _short_label(node, MIN_NARROW * width / SPAN, marks)
        if seen:
            parts.append(
                f'<text class="lb halo" x="{centre}" y="{y + 23:.1f}" text-anchor="middle">'
                f"{escape(seen)}</text>"
            )
    return _wrap(node, "".join(parts), seen, marks, href)


def _short_label(node: FlowNode, room: float, marks: Marks) -> str:
    share = f"{100 * node.share:.0f} %" if marks.shares else ""
    name = _fitted(node, room - text_width(f" {share}", SIZE))
    # A name of two or three letters says nothing.
    if len(name) >= 6:
        return f"{name} {share}".strip()
    return share if text_width(share, SIZE) <= room else ""


def _fitted(node: FlowNode, room: float) -> str:
    """Shorten a box's name: what kind of thing it is goes first, what it is called stays."""
    words = node_words(node)
    if fits(words, room, SIZE):
        return words
    if node.folded:
        return fit_text(f"{node.count:,} more", room, SIZE)
    flag = FLAG if words.startswith(FLAG) else ""
    room -= text_width(flag, SIZE)
    # The flag stays; who it came through is said where the box is read aloud, and by the thread.
    words = words.removeprefix(flag).rpartition(THROUGH)[0] or words.removeprefix(flag)
    if node.label is None:
        # Each word has its blank: of a long name no more of them can fit than letters do.
        words = " ".join(words.split(" ")[-max(max_letters(room, SIZE), 1) :])
        while " " in words and not fits(words, room, SIZE):
            words = words.partition(" ")[2]
    return flag + fit_text(words, room, SIZE)


def _line(
    node: FlowNode, x: float, y: float, room: float, marks: Marks, *, anchor: str
) -> tuple[str, str]:
    share = share_words(node.share) if marks.shares else ""
    mark = TURN if node.also else ""
    name = mark + _fitted(node, room - text_width(f"{mark} {share}", SIZE * BOLD))
    bold = f' <tspan class="pc">{escape(share)}</tspan>' if share else ""
    drawn = (
        f'<text class="lb halo" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(name)}{bold}</text>"
    )
    return f"{name} {share}".strip(), drawn


def _beside(node: FlowNode, tall: float, room: float, marks: Marks) -> tuple[str, str]:
    x = BAR / 2 + 6
    tag = node_tag(node)
    if tall < SOLE_LINE or not (tag or marks.shares):
        return _line(node, x, tall / 2 + 4.5, room, marks, anchor="start")
    share = share_words(node.share) if marks.shares else ""
    under = " · ".join(filter(None, (share, tag)))
    if not fits(under, room, SMALL):
        under = " · ".join(filter(None, (share, tag.replace("also at ", ""))))
    under = fit_text(under, room, SMALL)
    name = _fitted(node, room)
    drawn = (
        # A space between them, for those who hear both as one.
        f'<text class="lb halo" x="{x}" y="{tall / 2 - 2:.1f}">{escape(name)}</text> '
        f'<text class="lb2 halo" x="{x}" y="{tall / 2 + 13:.1f}">{escape(under)}</text>'
    )
    return f"{name} {under}", drawn


def _wrap(node: FlowNode, inner: str, seen: str, marks: Marks, href: str | None) -> Html:
    """Make a box something that can be pointed at: one Tab stop for all, arrows between them."""
    said = escape(heard(node, seen, marks, opens=href is not None))
    twin = f' data-t="{escape(node.twin)}"' if node.twin else ""
    stop = 0 if node.column == 0 else -1
    common = (
        f'class="nd k-{kind_of(node)}" data-n="{escape(node.id)}" data-c="{node.column}"{twin} '
        f'tabindex="{stop}" aria-label="{said}"'
    )
    if href is None:
        return Html(f'<g {common} role="img">{inner}</g>')
    opens = ' data-opens=""' if node.opens else ""
    return Html(f'<a {common}{opens} href="{escape(href)}">{inner}</a>')

"""Colours of the page: readable on a card, and kinds of origins apart for every kind of eye."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import coinhaze.web

CSS = (Path(coinhaze.web.__file__).parent / "static" / "app.css").read_text(encoding="utf-8")
KINDS = ("earlier", "service", "mined", "listed", "other")
# How linear red, green and blue are seen where one kind of cone is missing:
# Machado, Oliveira, Fernandes (2009), severity 1.
EYES = {
    "usual": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def colours(theme: str) -> dict[str, str]:
    start = CSS.index(":root {" if theme == "light" else ":root[data-theme=dark] {")
    found = re.findall(r"--(\w+): (#[0-9a-f]{3,6})", CSS[start : CSS.index("}", start)])
    return dict(found)


def linear(colour: str) -> np.ndarray:
    text = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    value = np.array([int(text[k : k + 2], 16) / 255 for k in (0, 2, 4)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, two: str) -> float:
    lights = sorted(0.05 + float(TO_XYZ[1] @ linear(c)) for c in (one, two))
    return lights[1] / lights[0]


def lab(colour: str, eye: str) -> np.ndarray:
    seen = np.clip(np.array(EYES[eye]) @ linear(colour), 0, 1)
    x, y, z = (TO_XYZ @ seen) / np.array([0.95047, 1.0, 1.08883])

    def f(t: float) -> float:
        return t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116

    return np.array([116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_and_marks_can_be_read(theme: str) -> None:
    found = colours(theme)
    for ground in ("card", "bg"):
        for name in ("ink", "dim", "accent"):
            assert contrast(found[name], found[ground]) >= 4.5, (name, ground)
    for name in (*KINDS, "edge"):
        assert contrast(found[name], found["card"]) >= 3, name
    assert contrast(found["on"], found["accent"]) >= 4.5


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_kinds_of_origins_stay_apart(theme: str, eye: str) -> None:
    found = colours(theme)
    for one, two in combinations(KINDS, 2):
        apart = np.linalg.norm(lab(found[one], eye) - lab(found[two], eye))
        assert apart >= 19, (one, two, apart)


def test_both_ways_to_be_dark_are_the_same() -> None:
    start = CSS.index(":root[data-theme=auto] {")
    auto = dict(re.findall(r"--([\w-]+): ([^;]+)", CSS[start : CSS.index("}", start)]))
    start = CSS.index(":root[data-theme=dark] {")
    assert auto == dict(re.findall(r"--([\w-]+): ([^;]+)", CSS[start : CSS.index("}", start)]))

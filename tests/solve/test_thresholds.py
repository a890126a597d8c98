"""Sizes, costs and widths that choose a method are in the planner, each once, and documented."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import coinhaze.solve
from coinhaze.solve.planner import thresholds

SOLVE = Path(coinhaze.solve.__file__).parent
# Numbers that are compared with and choose no method: what a figure is held to, or rounded by.
CHECKS = {
    "CERTIFICATE": "what rows of B and x^T B may be off by before an answer is refused",
    "NOTHING": "an exposure this small is none",
    "THRESHOLD": "the published rule's own number",
    "HIGHEST": "no list drops more than half of itself",
    "NO_COLUMN": "no number",
    "NO_STATE": "no number",
    "SHORTEST": "of lengths of paths: less is rounding",
    "UNPUSHED_SHARE": "what a round of a local walk leaves for the next one",
    "DRAWS": "a setting's default",
    "STARTING": "seconds until a cluster must have a worker",
    "RESTARTS": "after so many a worker that ends is an error",
    "REPUBLISHED": "after so many losses of a work its cluster is an error",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOLVE.rglob("*.py")):
        if path.parent.name != "planner" and not path.name.endswith("_kernels.py"):
            yield str(path.relative_to(SOLVE)), ast.parse(path.read_text())


def named_numbers(module: ast.Module) -> set[str]:
    """Give the names a module binds to numbers of its own."""
    names: set[str] = set()
    for node in module.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for part, value in zip(parts, values, strict=False):
                if isinstance(part, ast.Name) and _is_number(value):
                    names.add(part.id)
    return names


def _is_number(node: ast.expr) -> bool:
    try:
        return isinstance(eval(compile(ast.Expression(node), "", "eval"), {}), int | float)
    except NameError:
        return False


def test_no_threshold_is_outside_the_planner() -> None:
    found = []
    for name, module in modules():
        numbers = named_numbers(module) - CHECKS.keys()
        for node in ast.walk(module):
            if not isinstance(node, ast.Compare):
                continue
            for part in ast.walk(node):
                own = isinstance(part, ast.Name) and part.id in numbers
                value = part.value if isinstance(part, ast.Constant) else None
                large = isinstance(value, int | float) and value > 1024
                if own or large:
                    found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not found, found


def test_every_threshold_is_used_and_documented() -> None:
    text = Path(thresholds.__file__).read_text()
    names = [name for name in vars(thresholds) if name.isupper()]
    everything = "".join(
        p.read_text() for p in SOLVE.parent.rglob("*.py") if p.name != "thresholds.py"
    )
    assert len(names) > 30
    for name in names:
        assert f"thresholds.{name}" in everything or f"import {name}" in everything, name
    for block in text.split('"""', 2)[2].split("\n\n")[2:]:
        assert block.lstrip().startswith("#"), block

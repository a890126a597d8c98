"""Nothing is remembered behind a caller's back: sessions and caches are objects somebody holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import coinhaze

SOURCE = Path(coinhaze.__file__).parent
# Pure functions of a few plain values, whose answers are small.
PURE = {
    "simulate/technologies/rings.py",
    "formats/bitcoin_raw/scripts.py",
    "coinjoin/interpretations.py",
    "measures/confidence.py",
    "simulate/technologies/wabisabi.py",
    "options/__init__.py",
    "web/pages/render.py",
    "solve/gpu/device.py",  # CuPy, and kernels compiled once
}
# Empty at first and filled by registering, once for a name.
REGISTRIES = {
    "solve/pool/backend.py:_BACKENDS",
    "formats/registry.py:_formats",
    "errors.py:_secrets",
    "registry.py:_loaded",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def _makes_empty(node: ast.expr | None) -> bool:
    """Tell whether a value is an empty container that can only be filled later."""
    if isinstance(node, ast.Dict | ast.List):
        return not (node.keys if isinstance(node, ast.Dict) else node.elts)
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return name.split(".")[-1] in {
        "dict", "list", "set", "OrderedDict", "defaultdict", "WeakKeyDictionary",
        "WeakValueDictionary",
    } and not getattr(node, "args", ())  # fmt: skip


def _is_shared(statement: ast.stmt) -> bool:
    """Tell whether a class has one container for all of its objects; fields have defaults."""
    if isinstance(statement, ast.AnnAssign):
        return "ClassVar" in ast.unparse(statement.annotation) and _makes_empty(statement.value)
    return isinstance(statement, ast.Assign) and _makes_empty(statement.value)


def test_no_module_and_no_class_remembers() -> None:
    found = []
    for name, module in modules():
        for statement in module.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and _makes_empty(statement.value):
                names = ast.unparse(getattr(statement, "target", statement)).split(" = ")[0]
                found += [f"{name}:{names}"] * (not names.isupper() or names.startswith("_"))
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                found += [f"{name}:{node.name}" for s in node.body if _is_shared(s)]
    assert set(found) <= REGISTRIES, found


def test_only_pure_functions_are_memoised() -> None:
    found = set()
    for name, module in modules():
        for node in ast.walk(module):
            for decorator in getattr(node, "decorator_list", ()):
                if ast.unparse(decorator).split("(")[0].split(".")[-1] in ("lru_cache", "cache"):
                    found.add(name)
    assert found <= PURE, found


def test_nothing_is_cached_by_object_in_weak_dictionaries() -> None:
    found = [name for name, _ in modules() if "weakref" in (SOURCE / name).read_text()]
    assert found == []

"""Find what a mutant changes, by the names of things and not by their place, and change it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mutants.entries import Mutant


class DoesNotApply(Exception):
    """An entry of the list finds nothing to change, or too much."""


def mutated(mutant: Mutant, source: Path) -> tuple[Path, str]:
    """Give the file a mutant changes, below the folder `source`, and its new text."""
    path, tree = changed(mutant, source)
    return path, ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def changed(mutant: Mutant, source: Path) -> tuple[Path, ast.Module]:
    """Give the file a mutant changes, and its changed syntax tree.

    If the function is no longer in its module the whole package is searched for it.
    """
    home = source.joinpath(*mutant.module.split(".")).with_suffix(".py")
    homes = [home] if home.exists() and _functions(home, mutant) else _searched(mutant, source)
    if len(homes) != 1:
        raise DoesNotApply(f"{mutant}: the function is in {len(homes)} modules")
    tree = ast.parse(homes[0].read_text())
    functions = list(_named(tree, mutant.function))
    if len(functions) != 1:
        raise DoesNotApply(f"{mutant}: the function is there {len(functions)} times")
    change = _Change(mutant)
    change.within(functions[0])
    if change.found != mutant.times:
        raise DoesNotApply(f"{mutant}: found {change.found} times, not {mutant.times}")
    return homes[0], tree


def missing_tests(mutant: Mutant, root: Path) -> list[str]:
    """Give the tests of an entry that are not there."""
    missing = []
    for test in mutant.tests:
        file, _, name = test.partition("::")
        path = root / file
        found = path.exists() and any(_named(_parsed(path.read_text()), name.replace("::", ".")))
        if not found:
            missing.append(test)
    return missing


def _functions(path: Path, mutant: Mutant) -> bool:
    return any(_named(_parsed(path.read_text()), mutant.function))


@cache
def _parsed(text: str) -> ast.Module:
    """Parse what is looked at and not changed: many entries name the same files."""
    return ast.parse(text)


def _searched(mutant: Mutant, source: Path) -> list[Path]:
    """Find modules whose function of that name has the expression as often as it should."""
    found = []
    name = mutant.function.rpartition(".")[2]
    for path in sorted(source.rglob("*.py")):
        text = path.read_text()
        if f"def {name}" not in text:
            continue  # parsing takes a hundred times as long
        for function in _named(ast.parse(text), mutant.function):
            change = _Change(mutant)
            change.within(function)
            if change.found == mutant.times:
                found.append(path)
    return found


def _named(tree: ast.AST, name: str) -> Iterator[ast.AST]:
    """Find functions (or a module) by qualified name, among classes and functions."""
    if not name:
        yield tree
        return
    first, _, rest = name.partition(".")
    for node in _defined(tree):
        if node.name == first:
            yield from _named(node, rest)


def _defined(
    tree: ast.AST,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        elif isinstance(child, ast.stmt):
            yield from _defined(child)


class _Change(ast.NodeTransformer):
    """Put the replacement wherever the searched code stands."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.found = 0
        if mutant.text:
            return
        self.old, self.new = _code(mutant.find), _code(mutant.replace)
        if isinstance(self.old, ast.expr) != isinstance(self.new, ast.expr):
            raise DoesNotApply(f"{mutant}: one is an expression, the other a statement")
        self.dumped = ast.dump(self.old)

    def within(self, node: ast.AST) -> None:
        """Change one function, or the statements of a module or class that define no function."""
        if self.mutant.argument:
            self._default(node)
        elif self.mutant.function:
            self.generic_visit(node)
        else:
            assert isinstance(node, ast.Module)
            for at, statement in enumerate(node.body):
                if not _defines(statement):
                    node.body[at : at + 1] = [self.visit(statement)]  # type: ignore[list-item]

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace a node that reads like the searched one, whatever its layout."""
        if self.mutant.text:
            return self._in_text(node)
        if type(node) is type(self.old) and ast.dump(node) == self.dumped:
            self.found += 1
            return self.new
        return self.generic_visit(node)

    def _in_text(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.found += node.value.count(self.mutant.find)
            return ast.Constant(node.value.replace(self.mutant.find, self.mutant.replace))
        return self.generic_visit(node)

    def _default(self, node: ast.AST) -> None:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            raise DoesNotApply(f"{self.mutant}: only a function has arguments")
        positional = [*node.args.posonlyargs, *node.args.args]
        skip = len(positional) - len(node.args.defaults)
        for i, argument in enumerate(positional[skip:]):
            if argument.arg == self.mutant.argument:
                node.args.defaults[i] = self._expression(node.args.defaults[i])
        for i, argument in enumerate(node.args.kwonlyargs):
            default = node.args.kw_defaults[i]
            if argument.arg == self.mutant.argument and default is not None:
                node.args.kw_defaults[i] = self._expression(default)

    def _expression(self, node: ast.expr) -> ast.expr:
        changed = self.visit(node)
        assert isinstance(changed, ast.expr)
        return changed


def _defines(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _code(text: str) -> ast.stmt | ast.expr:
    body = ast.parse(text.strip()).body
    if len(body) != 1:
        raise DoesNotApply(f"not one expression or statement: {text!r}")
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]

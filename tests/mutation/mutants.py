"""Mutants of a module: one small change each, as compiled code.

Changed are comparisons, `and`/`or`, `not`, conditions, arithmetic, `bool` and number constants, arguments of `replace`,
entries of sets, lists and tables, calls without a result, `raise`, `break` and `continue`. Texts, annotations and
decorators stay: no decision depends on them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
UNTOUCHED_FIELDS = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True)
class Mutant:
    """`scope` is the function or class, `change` the text before and after it: both outlive a shifted line."""

    line: int
    scope: str
    change: str
    code: CodeType

    @property
    def name(self) -> str:
        return f"{self.scope}: {self.change}"


def mutants(source: str, path: str) -> Iterator[Mutant]:
    """Yield each mutant of a module's source."""
    tree = ast.parse(source)
    for place in _places(tree, ""):
        for changed in _variants(place.node):
            ast.copy_location(changed, place.node)
            ast.fix_missing_locations(changed)
            place.put(changed)
            change = f"{_text(place.node)} → {_text(changed)}"
            yield Mutant(place.node.lineno, place.scope or "module", change, compile(tree, path, "exec"))
            place.put(place.node)


@dataclass(frozen=True)
class _Place:
    """Where a node stands in its parent."""

    scope: str
    parent: ast.AST
    field: str
    index: int | None
    node: Any

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(parent: ast.AST, scope: str) -> Iterator[_Place]:
    """Yield the places of all expressions and statements below `parent` that mutants may change."""
    for field, value in ast.iter_fields(parent):
        if field in UNTOUCHED_FIELDS:
            continue
        children = enumerate(list(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            inner = scope
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{scope}.{child.name}".lstrip(".")
            if isinstance(child, (ast.expr, ast.stmt)):
                yield _Place(inner, parent, field, index, child)
            yield from _places(child, inner)


def _variants(node: ast.AST) -> Iterator[Any]:
    """Yield what can stand in the place of one node."""
    yield from _conditions(node)
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_union(node):
            yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.Constant():
            yield from _constants(node)
        case ast.Expr(value=ast.Call()) | ast.Expr(value=ast.Await()) | ast.Raise():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case _:
            yield from _shorter(node)


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node with a condition that always holds, and with one that never does."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not isinstance(node.test, ast.Constant):
        for value in (True, False):
            yield _with(node, test=ast.Constant(value))
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        for number, generator in enumerate(node.generators):
            if generator.ifs:
                generators = [*node.generators]
                generators[number] = _with(generator, ifs=[])
                yield _with(node, generators=generators)


def _comparisons(node: ast.Compare) -> Iterator[ast.Compare]:
    for number, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield ast.Compare(node.left, [*node.ops[:number], other(), *node.ops[number + 1 :]], node.comparators)


def _constants(node: ast.Constant) -> Iterator[ast.Constant]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        yield ast.Constant(node.value + 1)


def _shorter(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a set, list, table or call of `replace` without one of its entries."""
    match node:
        case ast.Set() | ast.List(ctx=ast.Load()):
            for number in range(len(node.elts)):
                rest = [*node.elts[:number], *node.elts[number + 1 :]]
                empty_set = isinstance(node, ast.Set) and not rest
                yield ast.Call(ast.Name("set", ast.Load()), [], []) if empty_set else _with(node, elts=rest)
        case ast.Dict():
            for number in range(len(node.keys)):
                keys, values = [*node.keys], [*node.values]
                del keys[number], values[number]
                yield ast.Dict(keys, values)
        case ast.Call(func=ast.Name(id="replace")):
            for number in range(len(node.keywords)):
                yield _with(node, keywords=[*node.keywords[:number], *node.keywords[number + 1 :]])


def _is_text(node: ast.AST) -> bool:
    """Return whether this only makes a text, or logs one."""
    match node:
        case ast.JoinedStr() | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case ast.IfExp():
            return isinstance(node.body, ast.JoinedStr) or isinstance(node.orelse, ast.JoinedStr)
    return False


def _is_union(node: ast.BinOp) -> bool:
    """Return whether this looks like `A | B` of types."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(isinstance(side, ast.Name) and side.id[0].isupper() for side in sides)


def _with(node: Any, **fields: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _text(node: ast.AST) -> str:
    """Return a statement's or expression's first line."""
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())

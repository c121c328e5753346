"""The mutations of a source: small changes that a test should notice."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
_LOGS = {"log", "logger", "logging", "warnings"}


@dataclass(frozen=True)
class Mutation:
    """One change: the text from ``start`` to ``end`` (offsets in characters) becomes ``new``."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str
    function: str
    """Qualified name of the innermost function around it, empty outside of functions."""

    @property
    def id(self) -> str:
        """Return a name that stays the same while the line does not change."""
        return f"{self.path}:{self.line}: {_short(self.old)} -> {_short(self.new)}"

    def applied(self, source: str) -> str:
        """Return the source with this change."""
        return source[: self.start] + self.new + source[self.end :]


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:57] + "..."


def mutations(path: str, source: str) -> list[Mutation]:
    """Return all mutations of a source, in its order; few do not compile (see ``compiles``)."""
    return list(_Finder(path, source).find())


def compiles(mutation: Mutation, source: str) -> bool:
    """Return whether the changed source is still a program."""
    try:
        compile(mutation.applied(source), mutation.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Finder:
    """Walks one source."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def find(self) -> Iterator[Mutation]:
        """Yield the mutations in the order of the source."""
        yield from self._walk(ast.parse(self._source), "", is_in_function=False)

    def _walk(self, node: ast.AST, scope: str, *, is_in_function: bool) -> Iterator[Mutation]:
        for child in ast.iter_child_nodes(node):
            if _is_left_out(node, child):
                continue
            name, is_inside = scope, is_in_function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{scope}.{child.name}".strip(".")
                is_inside = is_in_function or not isinstance(child, ast.ClassDef)
            for start, end, new in self._changes(child):
                old = self._source[start:end]
                number = self._source.count("\n", 0, start) + 1
                if is_inside or not old.isdigit():
                    yield Mutation(self._path, number, start, end, old, new, name if is_inside else "")
            yield from self._walk(child, name, is_in_function=is_inside)

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare(ops=[op], left=left, comparators=[right]):
                yield from self._between(left, right, *_COMPARE[type(op)])
            case ast.BoolOp(op=op, values=values):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._between(values[0], values[1], *words)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._start(node), self._start(operand), ""
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.NamedExpr | ast.Constant):
                    yield self._start(test), self._end(test), f"not ({self._text(test)})"
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                if not _is_text(left) and not _is_text(right):
                    yield from self._between(left, right, *_ARITHMETIC[type(op)])
            case ast.AugAssign(op=ast.Add() | ast.Sub() as op):
                words = ("+=", "-=") if isinstance(op, ast.Add) else ("-=", "+=")
                yield from self._between(node.target, node.value, *words)
            case ast.Constant(value=bool() as value):
                yield self._start(node), self._end(node), str(not value)
            case ast.Constant(value=0 | 1 | 2 as value):  # larger ones are limits and sizes that somebody chose
                yield self._start(node), self._end(node), str(value + 1)
            case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())) | ast.Raise() | ast.Delete():
                yield self._start(node), self._end(node), "pass"
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._start(node), self._end(node), "pass"
            case ast.Continue():
                yield self._start(node), self._end(node), "break"
            case ast.Break():
                yield self._start(node), self._end(node), "continue"

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[tuple[int, int, str]]:
        start, end = self._end(left), self._start(right)
        text = self._source[start:end]
        if text.count(old) == 1 and "#" not in text:
            at = start + text.index(old)
            yield at, at + len(old), new

    def _offset(self, line: int, column: int) -> int:
        begin = self._lines[line - 1]
        text = self._source[begin : self._lines[line]]
        return begin + len(text.encode()[:column].decode())

    def _start(self, node: ast.AST) -> int:
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        return self._source[self._start(node) : self._end(node)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_left_out(parent: ast.AST, child: ast.AST) -> bool:
    """Return whether changes of this node say nothing of the program's behaviour.

    These are annotations, decorators, log lines, texts of exceptions, abstract methods and overloads.
    """
    match parent, child:
        case ast.AnnAssign(annotation=annotation), _ if child is annotation:
            return True
        case ast.arg(), _:
            return True
        case ((ast.FunctionDef() | ast.AsyncFunctionDef()), _) if (
            child is parent.returns or child in parent.decorator_list
        ):
            return True
        case ast.ClassDef(), _ if child in parent.decorator_list:
            return True
        case _, ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case _, ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in _LOGS:
            return True
        case _, ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
        case _, ast.FormattedValue() | ast.JoinedStr():
            return True
        case _, ast.ClassDef(bases=[ast.Name(id="Protocol"), *_]):
            return True
    return isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)

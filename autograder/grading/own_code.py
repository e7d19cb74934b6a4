"""Reading a submission's source: is the answer the student's own, or does it hand the work to torch?

The cells are parsed, never run. A name is followed through imports, assignments, base classes and helpers, so that
``MyBatchNorm = nn.BatchNorm1d``, a subclass of it and a call of ``F.batch_norm`` three helpers deep are all found, and
so are names that are put together from texts (``getattr(nn, "Batch" + "Norm1d")``). What only running can tell
(``eval``, a name read from a file) is not seen here; the student's process watches the calls as well, and reports them
with its observations. An answer that reaches for the watching itself, or for the autograder, is not the student's work.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.overrides import resolve_name

from autograder.exercise import Exercise
from autograder.grading.syntax import parsed

_OPERATORS = "torch.ops."
MOST_DEFINITIONS = 500
_NAMING = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


# What no answer needs: the autograder (but for what notebooks import from it), and the ways around torch's watching.
_WELCOME = tuple(
    f"autograder.{name}" for name in ("check", "evaluate", "predict", "quiz", "recall", "clinic", "datasets", "lesson")
)
_FOREIGN = (
    "autograder.",
    "torch.overrides.",
    "torch.utils._python_dispatch.",
    "torch._C.Disable",
    "torch._C._len_torch",
)
# And where torch has the work done already: another thread or process, which is not watched, and what runs around it.
_ELSEWHERE = (
    "_thread. ctypes. concurrent.futures. gc.get_ inspect.currentframe inspect.stack multiprocessing. os.fork "
    "os.posix_spawn os.system subprocess. sys._current_frames sys._getframe sys.monitoring sys.setprofile sys.settrace "
    "threading.Thread threading.Timer threading.setprofile threading.settrace torch.jit. torch.compile"
).split()

_Meaning = tuple["str | ast.AST | None", "_Scope"]


class _Scope:
    """What names stand for: a dotted path into a library, or a piece of the student's source."""

    def __init__(self, parent: _Scope | None = None) -> None:
        self.parent = parent
        self.meanings: dict[str, str | ast.AST | None] = {}

    def find(self, name: str) -> _Meaning:
        """Return what a name stands for, with the scope in which that was said."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.meanings:
                return scope.meanings[name], scope
            scope = scope.parent
        return None, self

    def read(self, body: Iterable[ast.AST]) -> None:
        """Take up every binding in these statements, whatever branch it is in; of several the last one counts."""
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.meanings[statement.name] = statement
                continue
            if isinstance(statement, ast.Import):
                self._import(statement)
            elif isinstance(statement, ast.ImportFrom) and not statement.level:
                self._import_from(statement)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assign(target, statement.value)
            elif isinstance(statement, (ast.AnnAssign, ast.NamedExpr)) and statement.value is not None:
                self._assign(statement.target, statement.value)
            self.read(ast.iter_child_nodes(statement))

    def _import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            name = alias.asname or alias.name.partition(".")[0]
            self.meanings[name] = alias.name if alias.asname else name

    def _import_from(self, statement: ast.ImportFrom) -> None:
        for alias in statement.names:
            if alias.name == "*":
                module = _library(statement.module or "")
                for name in vars(module) if isinstance(module, types.ModuleType) else ():
                    self.meanings[name] = f"{statement.module}.{name}"
            else:
                self.meanings[alias.asname or alias.name] = f"{statement.module}.{alias.name}"

    def _assign(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Name):
            # `x = x` would be followed for ever.
            itself = isinstance(value, ast.Name) and value.id == target.id
            self.meanings[target.id] = self.meanings.get(target.id) if itself else value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._assign(one, other)


def _library(path: str) -> Any:
    """Return the object that a dotted path names inside torch, without running any code to find it; else None."""
    names = path.split(".")
    if names[0] != "torch":
        return None
    found: Any = torch
    for index, name in enumerate(names[1:], start=2):
        inside = vars(found).get(name) if isinstance(found, (types.ModuleType, type)) else None
        found = inside if inside is not None else sys.modules.get(".".join(names[:index]))
    return found


def handed_over(exercise: Exercise, sources: Sequence[str]) -> str | None:
    """Return one sentence when the source hands the exercise's work to torch, else None.

    ``sources`` holds the code cells before the check, in order. A cell that is not Python is passed over: it cannot
    have run either.
    """
    scope = _Scope()
    try:
        for tree in filter(None, map(parsed, sources)):
            scope.read(tree.body)
        return _Reading(exercise, scope).finding()
    except RecursionError:
        return None


class _Reading:
    """One look at the parts of an exercise and everything that they refer to; without one it only follows names."""

    def __init__(self, exercise: Exercise | None, scope: _Scope) -> None:
        self.exercise = exercise
        self.scope = scope
        self.visited: set[int] = set()
        self.waiting: list[tuple[ast.AST, _Scope]] = []

    def finding(self) -> str | None:
        for name in self.exercise.parts:
            meaning, scope = self.follow(ast.Name(name, ast.Load()), self.scope)
            if isinstance(meaning, str):
                if self.is_forbidden(meaning):
                    return f"{name} is torch's own {_last(meaning)}; {self.asked()}"
                if self.is_foreign(meaning):
                    return f"{name} is taken from {meaning}; {self.asked()}"
            elif meaning is not None:
                self.enqueue(meaning, scope)
        while self.waiting and len(self.visited) < MOST_DEFINITIONS:
            if said := self.look(*self.waiting.pop(0)):
                return said
        return None

    def asked(self) -> str:
        return f"{self.exercise.name} asks for your own code."

    def enqueue(self, node: ast.AST, scope: _Scope) -> None:
        if id(node) not in self.visited:
            self.visited.add(id(node))
            self.waiting.append((node, scope))

    def look(self, node: ast.AST, scope: _Scope) -> str | None:
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                meaning, _ = self.follow(base, scope)
                if isinstance(meaning, str) and self.is_forbidden(meaning):
                    return f"{node.name} inherits from torch's {_last(meaning)}; {self.asked()}"
        if isinstance(node, _FUNCTIONS):
            scope = _inside(node, scope)
        for used in (node, *_uses(node)):
            if used is not node and isinstance(used, _FUNCTIONS):
                self.enqueue(used, scope)
                continue
            meaning, where = self.follow(used, scope)
            if isinstance(meaning, str):
                if self.is_forbidden(meaning):
                    return f"{self.exercise.parts[0]} hands its work to {meaning}; {self.asked()}"
                if self.is_foreign(meaning):
                    return f"{self.exercise.parts[0]} reaches for {meaning}; {self.asked()}"
            elif meaning is not None:
                self.enqueue(meaning, where)
        return None

    def follow(self, node: ast.AST, scope: _Scope, depth: int = 0) -> _Meaning:
        """Return a dotted path into a library, a piece of the student's source, or None where neither can be told."""
        if depth > 50:
            return None, scope
        if isinstance(node, ast.Name):
            meaning, where = scope.find(node.id)
            if isinstance(meaning, _NAMING):
                further = self.follow(meaning, where, depth + 1)
                return (meaning, where) if further[0] is None else further
            return meaning, where
        if path := self.module_named(node, scope):
            return path, scope
        inner, attribute = self.looked_up(node, scope)
        if inner is None or attribute is None:
            return None, scope
        path, where = self.follow(inner, scope, depth + 1)
        return (f"{path}.{attribute}", where) if isinstance(path, str) else (None, scope)

    def looked_up(self, node: ast.AST, scope: _Scope) -> tuple[ast.AST | None, str | None]:
        """Return of ``a.b``, ``getattr(a, "b")``, ``vars(a)["b"]`` and ``a.__dict__["b"]`` the a and the "b"."""
        if isinstance(node, ast.Attribute):
            return node.value, node.attr
        if isinstance(node, ast.Call) and _called(node) == "getattr" and len(node.args) > 1:
            return node.args[0], self.text(node.args[1], scope)
        if isinstance(node, ast.Subscript):
            of = node.value
            if isinstance(of, ast.Call) and _called(of) == "vars" and of.args:
                return of.args[0], self.text(node.slice, scope)
            if isinstance(of, ast.Attribute) and of.attr == "__dict__":
                return of.value, self.text(node.slice, scope)
        return None, None

    def module_named(self, node: ast.AST, scope: _Scope) -> str | None:
        """Return the module that ``__import__("m")``, ``import_module("m")`` or ``sys.modules["m"]`` gives."""
        if isinstance(node, ast.Call) and node.args:
            called = _called(node) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
            name = self.text(node.args[0], scope) if called in ("__import__", "import_module") else None
            return name and (name.partition(".")[0] if called == "__import__" else name)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "modules":
            return self.text(node.slice, scope)
        return None

    def text(self, node: ast.AST, scope: _Scope, depth: int = 0) -> str | None:
        """Return the text that an expression of texts gives, or None where it is something else."""
        if depth > 20:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        pieces: Sequence[ast.AST] = ()
        between: str | None = ""
        if isinstance(node, ast.Name):
            meaning, where = scope.find(node.id)
            return self.text(meaning, where, depth + 1) if isinstance(meaning, ast.AST) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            pieces = (node.left, node.right)
        elif isinstance(node, ast.JoinedStr):
            pieces = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            between = self.text(node.func.value, scope, depth + 1)
            if node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
                pieces = node.args[0].elts
        found = [self.text(piece, scope, depth + 1) for piece in pieces]
        return between.join(filter(None, found)) if found and between is not None and None not in found else None

    def is_foreign(self, path: str) -> bool:
        """Whether an answer has no use for what a path names: it belongs to the autograder, or leads around it."""
        torch_has_it = self.exercise.forbidden or self.exercise.forbidden_classes or self.exercise.forbidden_code
        return _is_foreign(path, bool(torch_has_it))

    def is_forbidden(self, path: str) -> bool:
        found = _library(path)
        if inspect.isclass(found) and issubclass(found, self.exercise.forbidden_classes):
            return True
        if path.startswith(_OPERATORS):
            names = path.removeprefix(_OPERATORS).split(".")
            return any(names[1:2] == [_last(each)] for each in self.exercise.forbidden)
        if path in self.exercise.forbidden:
            return True
        try:
            return found is not None and callable(found) and resolve_name(found) in self.exercise.forbidden
        except (TypeError, AttributeError):
            return False


def worth_a_look(sources: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return what the cells name that no lesson needs, wherever in them it stands. It costs nothing: a person decides.

    ``known`` holds the cells that were handed out.
    """
    scope = _Scope()
    trees = [tree for source in sources if source not in known and (tree := parsed(source)) is not None]
    found: dict[str, None] = {}
    with contextlib.suppress(RecursionError):
        for source in sources:
            scope.read(tree.body if (tree := parsed(source)) else [])
        reading = _Reading(None, scope)
        for node in itertools.chain.from_iterable(map(ast.walk, trees)):
            path = reading.follow(node, scope)[0] if isinstance(node, _NAMING) else None
            if isinstance(path, str) and _is_foreign(path, True):
                found[path] = None
            if isinstance(node, ast.Call) and _called(node) in ("eval", "exec", "compile", "__import__"):
                found[_called(node)] = None
    return list(found)


def _is_foreign(path: str, everywhere: bool) -> bool:
    if path.startswith(_WELCOME):
        return False
    return path.startswith(_FOREIGN) or (everywhere and path.startswith(tuple(_ELSEWHERE)))


def _inside(function: ast.AST, scope: _Scope) -> _Scope:
    """Return the scope of a function's body: its arguments, and what it binds."""
    own, arguments = _Scope(scope), function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            own.meanings[argument.arg] = None
    own.read(function.body if isinstance(function.body, list) else [])
    return own


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _uses(node: ast.AST) -> Iterable[ast.AST]:
    """Yield the names, attributes and getattr calls that a piece of source reads, except in annotations and isinstance.

    Functions inside are yielded whole, because they have names of their own.
    """
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, _FUNCTIONS):
                yield child
            elif isinstance(child, ast.Call) and _called(child) in ("isinstance", "issubclass"):
                continue
            else:
                if isinstance(child, _NAMING):
                    yield child
                yield from _uses(child)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""

"""Which of torch's names a chapter uses, read from its code cells: the ground of "nothing is used before it is taught".

A name is what an author writes after an import of torch (``torch.tensor``, ``nn.Linear``, ``F.relu``), under torch's
own full path, or an attribute that every module has and no tensor has (``Module.register_buffer``), on whatever object
it is used. Operations of a tensor are taken for known.
"""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from autograder.authoring.source import read_source
from autograder.messages import UsageError

_OF_MODULES = {
    name
    for name in {*dir(nn.Module), *vars(nn.Module())}
    if not hasattr(object, name) and not hasattr(torch.Tensor, name)
}


def names_used(file: Path) -> dict[str, int]:
    """Return torch's names in a source file's code cells, each with the number of the cell where it first stands.

    Raises UsageError for a cell that is not Python.
    """
    found: dict[str, int] = {}
    bound: dict[str, str] = {}
    for number, cell in enumerate(read_source(file).cells):
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError as error:
            raise UsageError(f"{file.name}: cell {number} is not Python: {error}") from None
        for name in _names(tree, bound):
            found.setdefault(name, number)
    return found


def prose(file: Path) -> str:
    """Return the text of a source file's markdown cells."""
    return "\n".join(cell.source for cell in read_source(file).cells if cell.cell_type == "markdown")


def _names(tree: ast.AST, bound: dict[str, str]) -> Iterator[str]:
    """Yield the names in a tree; ``bound`` maps what imports have bound so far to torch's paths."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    bound[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if not _is_package(bound[alias.asname or alias.name]):
                    yield bound[alias.asname or alias.name]
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or (node in inner and _is_package(_path(node, bound))):
            continue
        path = _path(node, bound)
        if path is not None:
            yield path
        elif node.attr in _OF_MODULES:
            yield f"Module.{node.attr}"


def _path(node: ast.expr, bound: dict[str, str]) -> str | None:
    """Return torch's path of a dotted name, up to the first thing that is no package; None for another object's."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return None
    path = bound[node.id]
    if not _is_package(path):
        return None
    for part in reversed(parts):
        path = f"{path}.{part}"
        if not _is_package(path):
            # What follows belongs to a class: Module's own attributes are names of their own.
            break
    return path


def _is_package(path: str | None) -> bool:
    return path is not None and isinstance(_resolve(path), types.ModuleType)


def _resolve(path: str) -> Any:
    found: Any = importlib.import_module("torch")
    for part in path.split(".")[1:]:
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return None
        found = getattr(found, part, None)
    return found

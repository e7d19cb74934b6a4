"""Taking the right answers out of a process before it forks: what runs students' code has no need of them.

A probe drives an implementation and compares nothing, so that the references are not needed where it runs. What the
public checks expect is worked out first and kept: a student's own ``check`` in a cell beside works as at home.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

from autograder.cases import PUBLIC_SEED
from autograder.evaluation import reference_records
from autograder.registry import load_exercise

_HOME = "autograder.exercises."


def forget_answers(names: Sequence[str]) -> None:
    """Remove from these exercises' modules whatever neither a probe nor its cases use, and the references."""
    reference_records.cache_clear()
    exercises = [load_exercise(name) for name in names]
    for exercise in exercises:
        reference_records(exercise.name, PUBLIC_SEED, "cpu")
    needed = _needed(each for exercise in exercises for each in (exercise.observe, exercise.cases))
    for name, module in list(sys.modules.items()):
        if name.startswith(_HOME):
            for key, value in list(vars(module).items()):
                if _is_ours(value) and id(value) not in needed:
                    delattr(module, key)
    for exercise in exercises:
        object.__setattr__(exercise, "reference", ())


def _is_ours(value: Any) -> bool:
    kind = isinstance(value, (types.FunctionType, type))
    return kind and (getattr(value, "__module__", None) or "").startswith(_HOME)


def _needed(start: Iterable[Any]) -> set[int]:
    """Return the ids of the functions and classes that these functions use, however many steps away."""
    waiting, seen = list(start), set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            waiting.extend(_used(value.__code__, value.__globals__))
            waiting.extend(value.__defaults__ or ())
            waiting.extend((value.__kwdefaults__ or {}).values())
            waiting.extend(cell.cell_contents for cell in value.__closure__ or ())
            waiting.extend(vars(value).values())
        elif isinstance(value, (staticmethod, classmethod)):
            waiting.append(value.__func__)
        elif isinstance(value, property):
            waiting.extend([value.fget, value.fset, value.fdel])
        elif isinstance(value, type):
            if _is_ours(value):
                waiting.extend([*value.__bases__, *vars(value).values()])
        elif isinstance(value, dict):
            waiting.extend([*value, *value.values()])
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend(value)
        elif type(value).__module__.startswith(_HOME):
            waiting.extend(vars(value).values())
        elif hasattr(value, "__wrapped__"):
            waiting.append(value.__wrapped__)
    return seen


def _used(code: types.CodeType, globals_: dict[str, Any]) -> Iterable[Any]:
    for name in code.co_names:
        if name in globals_:
            found = globals_[name]
            yield found
            if isinstance(found, types.ModuleType) and found.__name__.startswith(_HOME):
                yield from (vars(found)[other] for other in code.co_names if other in vars(found))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _used(constant, globals_)

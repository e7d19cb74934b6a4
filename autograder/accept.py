"""Before a probe runs: is this the kind of thing that the exercise asks for, and is it the student's own?"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.exercise import Exercise


def wrong_kind(exercise: Exercise, parts: Sequence[Any]) -> str | None:
    """Return one sentence on what was handed in instead of what the exercise asks for, or None."""
    if len(parts) != len(exercise.parts):
        return f"{exercise.name} takes {_count(exercise.parts)}. Write: {exercise.check_call}"
    for name, part in zip(exercise.parts, parts, strict=True):
        if said := _wrong_part(exercise, name, part):
            return said
    for name, args, kwargs in exercise.calls:
        part = parts[exercise.parts.index(name)]
        if said := _refused_call(name, part, args, kwargs):
            return said
    return None


def _wrong_part(exercise: Exercise, name: str, part: Any) -> str | None:
    write = f"Write: {exercise.check_call}"
    if part is None:
        return f"{name} is None: did its cell run, and does the function that makes it return it? {write}"
    if exercise.kind == "class" and not inspect.isclass(part):
        if isinstance(part, torch.nn.Module):
            built = type(part).__name__
            return f"This is an instance of {built}; the check builds its own. {write}, without parentheses."
        return f"{name} should be a class, and this is {_kind(part)}. {write}"
    if exercise.kind == "functions" and not callable(part):
        return f"{name} should be a function, and this is {_kind(part)}. {write}"
    return None


def _refused_call(name: str, part: Any, args: tuple, kwargs: dict[str, Any]) -> str | None:
    try:
        signature = inspect.signature(part)
        signature.bind(*args, **kwargs)
    except ValueError:
        return None
    except TypeError as error:
        shown = ", ".join([*map(_short, args), *(f"{key}={_short(value)}" for key, value in kwargs.items())])
        return f"{name} is called as {name}({shown}), but yours takes {signature}: {error}."
    return None


@contextmanager
def watching(exercise: Exercise) -> Iterator[set[str]]:
    """Collect what torch does while an exercise's implementation is observed, by qualified name.

    It is the observing itself that is watched. A second look would be one that an implementation can tell from the
    first.
    """
    seen: set[str] = set()
    with ExitStack() as watches:
        if exercise.forbidden:
            watches.enter_context(_calls_seen(seen))
        if exercise.forbidden_code:
            watches.enter_context(_code_seen(seen, exercise.forbidden_code))
        yield seen


def handed_to_torch(exercise: Exercise, parts: Sequence[Any], seen: set[str]) -> str | None:
    """Return one sentence when the implementation lets torch do what the exercise asks the student to write.

    Looks at the class itself and at what was ``seen`` while it was watched: torch functions and operators, including
    those inside a child module, and forbidden Python code.
    """
    for name, part in zip(exercise.parts, parts, strict=True):
        for forbidden in exercise.forbidden_classes:
            if part is forbidden:
                return f"{name} is torch's own {forbidden.__name__}; {_own_words(exercise)}"
            if inspect.isclass(part) and issubclass(part, forbidden):
                return f"{name} inherits from torch's {forbidden.__name__}; {_own_words(exercise)}"
    operators = {name.split(".")[1] for name in seen if name.startswith("aten.")}
    named = [name for name in exercise.forbidden if name in seen or name.rpartition(".")[2] in operators]
    ran = sorted(name for name in seen if exercise.forbidden_code and name.startswith(exercise.forbidden_code))
    for found in (*named, *ran):
        return f"{exercise.parts[0]} hands its work to {found}; {_own_words(exercise)}"
    return None


def _own_words(exercise: Exercise) -> str:
    return f"{exercise.name} asks for your own code."


class _Passing(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return function(*args, **(kwargs or {}))


@functools.cache
def _warm_up() -> None:
    """Call one operator while it is watched: the first loads torch's compiler, and no answer should pay for that."""
    with _Passing():
        torch.zeros(1).add_(1)


@contextmanager
def _calls_seen(seen: set[str]) -> Iterator[None]:
    _warm_up()

    # Looking a name up takes longer than most calls. By identity: an answer may hold objects that equal anything.
    known: dict[int, Any] = {}

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            if id(function) not in known:
                known[id(function)] = function
                if name := resolve_name(function):
                    seen.add(name)
            return function(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            if id(function) not in known:
                known[id(function)] = function
                seen.add(str(function.overloadpacket))
            return function(*args, **(kwargs or {}))

    with Functions(), Operators():
        # The first call that is watched has torch import half of sympy: not in the time of whoever is observed.
        torch.empty(1).add(1)
        known.clear()
        seen.clear()
        yield


@contextmanager
def _code_seen(seen: set[str], forbidden: tuple[str, ...]) -> Iterator[None]:
    """Collect the qualified names of the Python functions that run and start with one of those in ``forbidden``.

    A function that is borrowed (``parameters = nn.Module.parameters``) or called with a foreign ``self`` is seen too.
    """
    # Only modules that a forbidden name starts with are worth the look: a profile function runs at every call.
    roots = tuple({name.split(".")[0] for name in forbidden})

    def look(frame: Any, event: str, argument: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and isinstance(module, str) and module.startswith(roots):
            name = f"{module}.{frame.f_code.co_qualname}"
            if name.startswith(forbidden):
                seen.add(name)

    previous = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(previous)


def _kind(value: Any) -> str:
    if inspect.isfunction(value):
        return "a function"
    if inspect.isclass(value):
        return "a class"
    return f"an object of type {type(value).__name__}"


def _count(parts: Sequence[str]) -> str:
    return "one implementation" if len(parts) == 1 else f"{len(parts)} functions, in this order: {', '.join(parts)}"


def _short(value: Any) -> str:
    # A value that stands for something the probe makes is shown by its name.
    return str(value) if isinstance(value, Placeholder) else repr(value)


class Placeholder(str):
    """The name of an argument in ``Exercise.calls``, shown without quotes."""

"""The functions that a check relies on, as they were before a student's first byte, put back before each check.

Student code shares its process with the probe and can replace whatever it finds there: ``observe_all``, the code of a
function, ``torch.equal``, a trace function. The seal undoes that. It is no wall: code that runs while the check runs
(the answer itself, a thread) can still change things afterwards. SECURITY.md says what follows from that.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# What the probe, the observing and the handing over are made of. Other modules of the lesson keep state of their own.
_OURS = "autograder"
_LEFT_ALONE = ("autograder.lesson", "autograder.student", "autograder.authoring", "autograder.grading.kernel")
_OTHERS = (
    "base64 builtins contextlib copy inspect io json json.encoder linecache os posix random signal tempfile time "
    "traceback warnings IPython.display IPython.core.display_functions safetensors safetensors.torch torch torch.nn "
    "torch.autograd torch.nn.functional torch.nn.modules.module torch.nn.parameter torch.overrides torch.random "
    "torch.utils._python_dispatch"
).split()
_CLASSES = (
    "torch.Tensor torch.nn.Module torch.nn.Parameter torch.overrides.TorchFunctionMode "
    "torch.utils._python_dispatch.TorchDispatchMode json.JSONEncoder"
).split()
_MISSING = object()
_ATTRIBUTES_CAN_BE_SET = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class Seal:
    """Remembers the functions of the modules that are loaded now; ``restore`` puts back what was changed since."""

    def __init__(self) -> None:
        self.modules: list[tuple[str, types.ModuleType, dict[str, Any]]] = []
        self.classes: list[tuple[type, dict[str, Any]]] = []
        self.functions: list[tuple[types.FunctionType, tuple[Any, ...], tuple[Any, ...]]] = []
        self.containers: list[tuple[Any, Any]] = []
        self.objects: list[tuple[Any, dict[str, Any]]] = []
        self._known: set[int] = set()
        for name, module in sorted(sys.modules.items()):
            ours = name.split(".")[0] == _OURS and not name.startswith(_LEFT_ALONE)
            if isinstance(module, types.ModuleType) and (ours or name in _OTHERS):
                self._module(name, module, ours)
        for path in _CLASSES:
            module, _, name = path.rpartition(".")
            if module in sys.modules:
                self._class(getattr(sys.modules[module], name))
        self._known.clear()

    def _module(self, name: str, module: types.ModuleType, ours: bool) -> None:
        # Of others only what can be called: they keep state in their names, and some of it is rightly changed.
        kept = {key: value for key, value in vars(module).items() if ours or callable(value)}
        self.modules.append((name, module, kept))
        for value in list(kept.values()):
            if getattr(value, "__module__", None) == name or _is_ours(value):
                self._value(value)
            elif ours and type(value) in (dict, list, set) and self._is_new(value):
                self.containers.append((value, value.copy()))

    def _value(self, value: Any) -> None:
        if isinstance(value, type):
            self._class(value)
            return
        for function in _functions_in(value):
            if self._is_new(function):
                cells = tuple((cell, cell.cell_contents) for cell in function.__closure__ or () if _is_full(cell))
                was = (function.__code__, function.__defaults__, function.__kwdefaults__, dict(vars(function)))
                self.functions.append((function, was, cells))
                for _, inside in cells:
                    self._value(inside)
        if _is_ours(value) and hasattr(value, "__dict__") and self._is_new(value):
            self.objects.append((value, dict(vars(value))))
            for inside in vars(value).values():
                self._value(inside)

    def _class(self, kind: type) -> None:
        if kind.__flags__ & _ATTRIBUTES_CAN_BE_SET and self._is_new(kind):
            kept = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__")}
            self.classes.append((kind, kept))
            for value in kept.values():
                self._value(value)

    def _is_new(self, value: object) -> bool:
        new = id(value) not in self._known
        self._known.add(id(value))
        return new

    def restore(self) -> None:
        """Put everything back, and take away what could change it again while nobody looks."""
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)  # type: ignore[arg-type]
        threading.setprofile(None)
        gc.callbacks.clear()
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for name, module, kept in self.modules:
            sys.modules[name] = module
            _put_back(vars(module), kept, vars(module).__setitem__)
        for kind, kept in self.classes:
            _restore_class(kind, kept)
        for function, (code, defaults, keywords, attributes), cells in self.functions:
            if function.__code__ is not code:
                function.__code__ = code
            function.__defaults__, function.__kwdefaults__ = defaults, keywords
            if vars(function) != attributes:
                vars(function).clear()
                vars(function).update(attributes)
            for cell, contents in cells:
                cell.cell_contents = contents
        for container, kept in self.containers:
            if container != kept:
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(kept)
        for value, kept in self.objects:
            _put_back(vars(value), kept, lambda name, was, value=value: object.__setattr__(value, name, was))


def _is_ours(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == _OURS


def _put_back(now: dict[str, Any], kept: dict[str, Any], put: Callable[[str, Any], None]) -> None:
    for name, value in kept.items():
        if now.get(name, _MISSING) is not value:
            put(name, value)


def _restore_class(kind: type, kept: dict[str, Any]) -> None:
    now = vars(kind)
    for name in [name for name in now if name not in kept and name not in ("__dict__", "__weakref__")]:
        # A method that somebody adds is theirs to use; one that covers an inherited one changes what was there.
        if any(name in vars(base) for base in kind.__mro__[1:]):
            type.__delattr__(kind, name)
    for name, value in kept.items():
        if now.get(name, _MISSING) is not value:
            type.__setattr__(kind, name, value)


def _is_full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises.
    except ValueError:
        return False
    return True


def _functions_in(value: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions behind a value: itself, what it wraps, a property's three."""
    waiting: list[Any] = [value]
    for _ in range(10):
        found: list[Any] = []
        for each in waiting:
            if isinstance(each, types.FunctionType):
                yield each
            found.extend(_wrapped(each))
        if not found:
            return
        waiting = found


def _wrapped(value: Any) -> Iterable[Any]:
    if isinstance(value, property):
        return [function for function in (value.fget, value.fset, value.fdel) if function is not None]
    inside = getattr(value, "__dict__", {}).get("__wrapped__") if not isinstance(value, type) else None
    inside = inside or (value.__func__ if isinstance(value, (staticmethod, classmethod)) else None)
    return [] if inside is None else [inside]

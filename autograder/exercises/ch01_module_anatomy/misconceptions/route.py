"""Wrong routes. Each gets one question of Module.__setattr__ wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


def _is_parameter(value: Any) -> bool:
    return isinstance(value, nn.Parameter)


def _is_module(value: Any) -> bool:
    return isinstance(value, nn.Module)


def _is_buffer(value: Any) -> bool:
    return isinstance(value, nn.Buffer)


def _ready(module: nn.Module) -> None:
    if "_parameters" not in vars(module):
        raise AttributeError("Module.__init__ has not run")


def _allowed(module: nn.Module, name: str) -> None:
    if not name or "." in name or hasattr(type(module), name):
        raise KeyError(name)


def _free(module: nn.Module, name: str) -> None:
    if name in vars(module):
        raise KeyError(name)


def _expect(value: Any, *types: type) -> None:
    if value is not None and not isinstance(value, types):
        raise TypeError(type(value).__name__)


def _route(
    *,
    is_parameter: Callable[[Any], bool] = _is_parameter,
    is_module: Callable[[Any], bool] = _is_module,
    is_buffer: Callable[[Any], bool] = _is_buffer,
    ready: Callable[[nn.Module], None] = _ready,
    allowed: Callable[[nn.Module, str], None] = _allowed,
    free: Callable[[nn.Module, str], None] = _free,
    expect: Callable[..., None] = _expect,
    none_has_a_home: bool = True,
) -> Callable[[nn.Module, str, Any], str]:
    """Return a route with the decisions given; without any it is torch's."""

    def route(module: nn.Module, name: str, value: Any) -> str:
        has = {home: name in vars(module).get(home, ()) for home in ("_parameters", "_modules", "_buffers")}
        if value is None and not none_has_a_home:
            return "__dict__"
        if is_parameter(value):
            ready(module)
            allowed(module, name)
            return "_parameters"
        if has["_parameters"]:
            expect(value)
            return "_parameters"
        if is_module(value):
            ready(module)
            return "_modules"
        if has["_modules"]:
            expect(value)
            return "_modules"
        if is_buffer(value) or has["_buffers"]:
            expect(value, torch.Tensor)
            if not has["_buffers"]:
                ready(module)
                allowed(module, name)
                free(module, name)
            return "_buffers"
        return "__dict__"

    return route


def _nothing(*arguments: Any) -> None:
    pass


def _value_only(module: nn.Module, name: str, value: Any) -> str:
    _ready_for(module, value)
    if _is_parameter(value):
        _allowed(module, name)
        return "_parameters"
    if _is_module(value):
        return "_modules"
    if _is_buffer(value):
        _allowed(module, name)
        _free(module, name)
        return "_buffers"
    return "__dict__"


def _ready_for(module: nn.Module, value: Any) -> None:
    if isinstance(value, (nn.Parameter, nn.Module, nn.Buffer)):
        _ready(module)


_right = _route()


def _name_first(module: nn.Module, name: str, value: Any) -> str:
    for home, types in (("_parameters", nn.Parameter), ("_modules", nn.Module), ("_buffers", torch.Tensor)):
        if name in vars(module).get(home, ()):
            _expect(value, types)
            return home
    return _right(module, name, value)


def _module_before_parameter(module: nn.Module, name: str, value: Any) -> str:
    if _is_module(value):
        _ready(module)
        return "_modules"
    return _right(module, name, value)


def _taken_names_refused(module: nn.Module, name: str, value: Any) -> str:
    # As the condition of `register_parameter` reads, without the clearing that goes before it.
    if _is_parameter(value) and name not in vars(module).get("_parameters", (name,)) and hasattr(module, name):
        raise KeyError(name)
    return _right(module, name, value)


def _anything_over_a_buffer(module: nn.Module, name: str, value: Any) -> str:
    if name in vars(module).get("_buffers", ()) and not _is_parameter(value) and not _is_module(value):
        return "_buffers"
    return _right(module, name, value)


def _by_attribute(module: nn.Module, name: str, value: Any) -> str:
    # Reading `module._parameters` goes through `__getattr__`, which raises as long as there is none.
    assert all(isinstance(registry, dict) for registry in (module._parameters, module._modules, module._buffers))
    return _right(module, name, value)


def _misconception(name: str, route: Any, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (route,))


misconceptions = (
    _misconception(
        "value_only",
        _value_only,
        "a plain tensor under a buffer's name",
        "only the value is looked at, never what the name stands for already",
        "Two assignments with the same value may end differently. What else than the value does `__setattr__` look at?",
        "the three `elif` and `or` conditions that contain `name in`",
    ),
    _misconception(
        "name_first",
        _name_first,
        "a parameter under a buffer's name",
        "the name's present home decides before the value is looked at",
        "What stands first in `Module.__setattr__`: a question about the value, or about the name?",
        "the first branch of `Module.__setattr__`, and what it removes",
    ),
    _misconception(
        "tensors_become_buffers",
        _route(is_buffer=lambda value: isinstance(value, torch.Tensor) and not _is_parameter(value)),
        "a plain tensor under a fresh name",
        "every tensor that is not a parameter is taken for a buffer",
        "Assign a tensor to a fresh name and print `_buffers`. What does the last branch ask besides the type?",
        "the condition of the buffer branch in `Module.__setattr__`",
    ),
    _misconception(
        "gradient_makes_parameter",
        _route(is_parameter=lambda value: isinstance(value, torch.Tensor) and value.requires_grad),
        "a tensor that requires a gradient under a fresh name",
        "a tensor is taken for a parameter because it requires a gradient",
        "Is a frozen parameter still a parameter? Does the first branch ask about gradients at all?",
        "the first branch of `Module.__setattr__`",
    ),
    _misconception(
        "list_is_module",
        _route(
            is_module=lambda value: (
                _is_module(value) or (isinstance(value, list) and all(isinstance(item, nn.Module) for item in value))
            )
        ),
        "a list of modules under a fresh name",
        "a list of modules is taken for a child",
        "What does `isinstance([nn.ReLU()], nn.Module)` say?",
        "the first page of chapter 0",
    ),
    _misconception(
        "class_is_module",
        _route(is_module=lambda value: _is_module(value) or hasattr(value, "named_modules")),
        "a module class, without its parentheses, under a fresh name",
        "a class of modules is taken for a module",
        "`nn.ReLU` and `nn.ReLU()`: which of them is an instance of `nn.Module`?",
        "the second branch of `Module.__setattr__`",
    ),
    _misconception(
        "none_is_plain",
        _route(none_has_a_home=False),
        "None under a parameter's name",
        "None always becomes a plain attribute",
        "After `layer.bias` was set to None, does `'bias' in layer._parameters` still hold? Try it on an `nn.Linear`. "
        "What would be lost if it did not?",
        "the lines of `Module.__setattr__` that end with `or None expected`",
    ),
    _misconception(
        "nothing_refused",
        _route(expect=_nothing),
        "a plain tensor under a parameter's name",
        "a value out of place is stored in the registry all the same",
        "Put a number where `forward` expects a weight. When would you like to hear of it: now, or in the next batch?",
        "the `raise TypeError` statements of `Module.__setattr__`",
    ),
    _misconception(
        "init_not_needed",
        _route(ready=_nothing),
        "a parameter under a fresh name, before __init__",
        "a missing `super().__init__()` is not noticed",
        "Which dict would the parameter go into, if `__init__` has not made it yet?",
        "the messages that end with `before Module.__init__() call`",
    ),
    _misconception(
        "everything_needs_init",
        _by_attribute,
        "a plain tensor under a fresh name, before __init__",
        "before `__init__` even plain values are refused",
        "How does `Module.__setattr__` look for its registries, so that it can find none without an error?",
        "the first line after `remove_from` in `Module.__setattr__`",
    ),
    _misconception(
        "any_name",
        _route(allowed=_nothing),
        "a parameter under a name with a dot",
        "names are not looked at",
        "What would the path `left.right.weight` mean, if a single parameter could be called that?",
        "the `raise KeyError` statements of `Module.register_parameter`",
    ),
    _misconception(
        "taken_names_refused",
        _taken_names_refused,
        "a parameter under a child's name",
        "a parameter is refused under a name that another home has",
        "Walk through the assignment of a parameter to a child's name. What has happened to that name by the time "
        "`register_parameter` asks `hasattr(self, name)`?",
        "`remove_from` at the top of `Module.__setattr__`",
    ),
    _misconception(
        "anything_over_a_buffer",
        _anything_over_a_buffer,
        "a number under a buffer's name",
        "a buffer's name takes any value",
        "A running mean becomes the number 3. Could `state_dict()` save it? Which values does torch let in under that "
        "name?",
        "the last `raise TypeError` of `Module.__setattr__`",
    ),
    _misconception(
        "buffer_takes_any_place",
        _route(free=_nothing),
        "an nn.Buffer under a plain attribute's name",
        "an nn.Buffer takes over the name of a plain attribute",
        "`__setattr__` clears the other homes for a parameter and for a module. Does it do so for a buffer? What does "
        "`register_buffer` say then?",
        "the `raise KeyError` statements of `Module.register_buffer`",
    ),
    _misconception(
        "child_replaces_parameter",
        _module_before_parameter,
        "a module under a parameter's name",
        "a module takes over the name of a parameter",
        "A parameter may replace a child. Is it the same the other way round? Which question stands first?",
        "the order of the first three branches in `Module.__setattr__`",
    ),
)

"""Changes that do not arrive, cut the gradient, or cannot be taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception

Change = Callable[[Any], Any]


def _applied(change: Change, output: Any) -> Any:
    """Return the changed output, whatever its form; the decision that most of the answers below get right."""
    if not isinstance(output, tuple):
        changed = change(output)
        return output if changed is None else changed
    first = change(output[0])
    return output if first is None else (first, *output[1:])


def _hooked(model: nn.Module, path: str, hook: Callable) -> Any:
    return model.get_submodule(path).register_forward_hook(hook)


def nothing_returned(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple, output: Any) -> None:
        output = _applied(change, output)

    return _hooked(model, path, hook)


def before_instead_of_after(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple) -> Any:
        return tuple(_applied(change, value) for value in args)

    return model.get_submodule(path).register_forward_pre_hook(hook)


def handle_kept_back(model: nn.Module, path: str, change: Change) -> None:
    _hooked(model, path, lambda module, args, output: _applied(change, output))


def pair_as_a_whole(model: nn.Module, path: str, change: Change) -> Any:
    return _hooked(model, path, lambda module, args, output: change(output))


def pair_lost(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple, output: Any) -> Any:
        return change(output[0] if isinstance(output, tuple) else output)

    return _hooked(model, path, hook)


def pair_as_list(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple, output: Any) -> Any:
        changed = _applied(change, output)
        return list(changed) if isinstance(changed, tuple) else changed

    return _hooked(model, path, hook)


def none_in_the_pair(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple, output: Any) -> Any:
        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

    return _hooked(model, path, hook)


def detached(model: nn.Module, path: str, change: Change) -> Any:
    def cut(value: Any) -> Any:
        return change(value.detach())

    return _hooked(model, path, lambda module, args, output: _applied(cut, output))


def values_overwritten(model: nn.Module, path: str, change: Change) -> Any:
    def hook(module: nn.Module, args: tuple, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        with torch.no_grad():
            changed = change(first)
            if changed is not None:
                first.data.copy_(changed)

    return _hooked(model, path, hook)


def output_of_the_root(model: nn.Module, path: str, change: Change) -> Any:
    model.get_submodule(path)
    return model.register_forward_hook(lambda module, args, output: _applied(change, output))


def others_cleared(model: nn.Module, path: str, change: Change) -> Any:
    part = model.get_submodule(path)
    part._forward_hooks.clear()
    return part.register_forward_hook(lambda module, args, output: _applied(change, output))


class _Undo:
    """What a handle can do, for answers that register nothing."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self.remove = undo

    def __enter__(self) -> _Undo:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class _Changed(nn.Module):
    def __init__(self, inner: nn.Module, change: Change) -> None:
        super().__init__()
        self.inner, self.change = inner, change

    def forward(self, *args: Any) -> Any:
        return _applied(self.change, self.inner(*args))


def module_wrapped(model: nn.Module, path: str, change: Change) -> Any:
    inner = model.get_submodule(path)
    wrapper = _Changed(inner, change)
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, wrapper)
    return _Undo(lambda: setattr(model.get_submodule(parent), name, inner))


def forward_patched(model: nn.Module, path: str, change: Change) -> Any:
    part = model.get_submodule(path)
    original = part.forward
    part.forward = lambda *args: _applied(change, original(*args))

    def undo() -> None:
        part.forward = original

    return _Undo(undo)


def _misconception(name: str, made: Any, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "nothing_returned",
        nothing_returned,
        "output of the model with one change",
        "the hook computes the change and hands nothing back",
        "Binding a local name to something new: who outside the function can see that? What does your hook hand to "
        "torch?",
        "the section on what a hook returns in this chapter",
    ),
    _misconception(
        "before_instead_of_after",
        before_instead_of_after,
        "what the change was given",
        "the input of the module is changed instead of its output",
        "Print what your change receives. Is it what went into the module, or what came out?",
        "the table of hooks in this chapter",
    ),
    _misconception(
        "handle_kept_back",
        handle_kept_back,
        "output when the first change is removed",
        "the handle is not returned, so nobody can remove the hook",
        "What does your function return, and what would a caller need to undo the change?",
        "the section on handles in this chapter",
    ),
    _misconception(
        "pair_as_a_whole",
        pair_as_a_whole,
        "what the change was given of a pair",
        "the change gets the whole tuple",
        "Print the type of `output` for attention in your hook. Which part of it does the card hand to `change`?",
        "the card of this exercise",
    ),
    _misconception(
        "pair_lost",
        pair_lost,
        "the pair with its first part changed",
        "a module that returned a tuple returns a tensor now",
        "How many things does attention return without you, and how many with you?",
        "the card of this exercise",
    ),
    _misconception(
        "pair_as_list",
        pair_as_list,
        "type of the pair with its first part changed",
        "a module that returned a tuple returns a list now",
        "A caller asks `isinstance(output, tuple)`. What does it find with your change in place?",
        "the card of this exercise",
    ),
    _misconception(
        "none_in_the_pair",
        none_in_the_pair,
        "the pair when the change returns None",
        "a change that returns None puts None into the tuple",
        "Let `change` return None for attention. What is the first part of the pair then?",
        "the section on what a hook returns in this chapter",
    ),
    _misconception(
        "detached",
        detached,
        "gradient of the layer that was changed",
        "the change works on a detached output",
        "Call backward. Does the layer whose output you changed still get a gradient?",
        "the section on what a hook returns in this chapter",
    ),
    _misconception(
        "values_overwritten",
        values_overwritten,
        "gradient of the layer that was changed",
        "the values are overwritten behind autograd's back",
        "The output is scaled by two. By how much should the layer's gradient grow, and by how much does yours?",
        "the section on what a hook returns in this chapter",
    ),
    _misconception(
        "output_of_the_root",
        output_of_the_root,
        "what the change was given",
        "the hook sits on the whole model instead of on the module at the path",
        "Compare the shape that your change receives with the shape that this layer returns. Whose output is it?",
        "the section on paths in chapter 2",
    ),
    _misconception(
        "others_cleared",
        others_cleared,
        "what somebody else's earlier hook saw",
        "hooks that were there before are thrown away",
        "Ask for two changes of one layer. Which of them is still there, and whose hooks did the first line remove?",
        "the section on handles in this chapter",
    ),
    _misconception(
        "module_wrapped",
        module_wrapped,
        "keys of state_dict() that differ",
        "the module is replaced by a wrapper around it",
        "Compare the keys of `state_dict()` before and after. Could somebody load an old file into this model?",
        "the section on what the file knows in chapter 2",
    ),
    _misconception(
        "forward_patched",
        forward_patched,
        "output of a deepcopy with other weights",
        "the instance's forward is overwritten",
        "Make a deepcopy and halve its weights. Whose weights does its patched forward use?",
        "the section on handles in this chapter",
    ),
)

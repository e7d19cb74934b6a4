"""Recorders that leave something behind, miss something, or change what they watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Recorder:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, model: nn.Module, names: Any = None) -> None:
        self.model, self.seen, self.handles = model, {}, []
        self.chosen = self.choose(names)

    def parts(self) -> dict[str, nn.Module]:
        return dict(self.model.named_modules())

    def choose(self, names: Any) -> dict[str, nn.Module]:
        parts = self.parts()
        return parts if names is None else {path: parts[path] for path in names}

    def copied(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.copied(item) for item in value)
        if isinstance(value, dict):
            return {key: self.copied(item) for key, item in value.items()}
        return value

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach().clone()

    def store(self, path: str, output: Any) -> Any:
        self.seen.setdefault(path, []).append(self.copied(output))

    def hook_for(self, path: str) -> Callable[..., Any]:
        return lambda module, args, output: self.store(path, output)

    def register(self) -> None:
        for path, part in self.chosen.items():
            self.handles.append(part.register_forward_hook(self.hook_for(path)))

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> dict[str, list]:
        self.register()
        return self.seen

    def __exit__(self, *error: object) -> None:
        self.remove()


class NeverRemoved(_Recorder):
    def remove(self) -> None:
        self.handles.clear()


@contextmanager
def left_after_an_error(model: nn.Module, names: Any = None) -> Iterator[dict[str, list]]:
    recorder = _Recorder(model, names)
    recorder.register()
    yield recorder.seen
    recorder.remove()


class AliasKept(_Recorder):
    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach()


class GraphKept(_Recorder):
    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        return value.clone()


class OutputReplaced(_Recorder):
    def store(self, path: str, output: Any) -> Any:
        kept = self.copied(output)
        self.seen.setdefault(path, []).append(kept)
        return kept


class LastCallOnly(_Recorder):
    def store(self, path: str, output: Any) -> Any:
        self.seen[path] = [self.copied(output)]


class EveryOutputATensor(_Recorder):
    def copied(self, value: Any) -> Any:
        return value.detach().clone()


class OthersRemoved(_Recorder):
    def remove(self) -> None:
        for part in self.model.modules():
            part._forward_hooks.clear()


class LeavesOnly(_Recorder):
    def choose(self, names: Any) -> dict[str, nn.Module]:
        leaves = {path: part for path, part in self.parts().items() if not list(part.children())}
        return leaves if names is None else {path: self.parts()[path] for path in names}


class ChildrenOnly(_Recorder):
    def choose(self, names: Any) -> dict[str, nn.Module]:
        children = dict(self.model.named_children())
        return children if names is None else {path: self.parts()[path] for path in names}


class LateBinding(_Recorder):
    def register(self) -> None:
        for path, part in self.chosen.items():
            # The loop's variable is read when the hook fires: that is this misconception.
            handle = part.register_forward_hook(lambda module, args, output: self.store(path, output))  # noqa: B023
            self.handles.append(handle)


class RegisteredBeforeAllNamesAreKnown(_Recorder):
    def choose(self, names: Any) -> Any:
        return list(self.parts() if names is None else names)

    def register(self) -> None:
        parts = self.parts()
        for path in self.chosen:
            self.handles.append(parts[path].register_forward_hook(self.hook_for(path)))


class NoNamesTakenForAll(_Recorder):
    def choose(self, names: Any) -> dict[str, nn.Module]:
        return super().choose(names or None)


class TuplesKeptAsLists(_Recorder):
    def copied(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.copied(item) for item in value]
        return super().copied(value)


class UnknownNamesIgnored(_Recorder):
    def choose(self, names: Any) -> dict[str, nn.Module]:
        return {path: part for path, part in self.parts().items() if names is None or path in names}


def _misconception(name: str, made: Any, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "never_removed",
        NeverRemoved,
        "modules whose hooks differ afterwards",
        "the hooks stay on the model after the block",
        "Print `len(model._forward_hooks)` after the block, then after a second one. Who takes your hooks away?",
        "the section on handles in this chapter",
    ),
    _misconception(
        "left_after_an_error",
        left_after_an_error,
        "modules whose hooks differ after an error",
        "the hooks stay when the block ends with an exception",
        "Let the model raise inside the block. Which of your lines after `yield` still run?",
        "the section on the with block in this chapter",
    ),
    _misconception(
        "alias_kept",
        AliasKept,
        "recorded for stem.0, before a ReLU in place",
        "the recorded tensors share their memory with the model's",
        "An in-place ReLU follows the layer. Are there negative numbers in your record, and were there any before?",
        "the section on what a hook should keep in this chapter",
    ),
    _misconception(
        "graph_kept",
        GraphKept,
        "values recorded require a gradient",
        "the recorded tensors carry the autograd graph",
        "What does `requires_grad` say of a recorded tensor, and what stays in memory as long as your dict does?",
        "the section on what a hook should keep in this chapter",
    ),
    _misconception(
        "output_replaced",
        OutputReplaced,
        "gradient of the first weight",
        "the hook returns what it recorded, so the model goes on with the copy",
        "Call backward inside the block. Which layers have a gradient? And what does your hook hand back to torch?",
        "the section on what a hook returns in this chapter",
    ),
    _misconception(
        "last_call_only",
        LastCallOnly,
        "recorded for a layer that is called twice",
        "a second call overwrites the first",
        "One layer of the model runs twice in one forward pass. How many entries does your list have for it?",
        "the card of this exercise",
    ),
    _misconception(
        "every_output_a_tensor",
        EveryOutputATensor,
        "recorded for an LSTM: a nested tuple",
        "every output is treated as a tensor",
        "What is `type(output)` for an LSTM, for attention, and for a module that returns a dict?",
        "the section on what a hook should keep in this chapter",
    ),
    _misconception(
        "others_removed",
        OthersRemoved,
        "how often somebody else's hook fired",
        "all hooks are removed, not only one's own",
        "Register a hook of your own before the block. Does it still fire afterwards, and who knew whose it was?",
        "the section on handles in this chapter",
    ),
    _misconception(
        "leaves_only",
        LeavesOnly,
        "recorded for attention: a tuple with None",
        "only modules without children are recorded",
        "Which module inside nn.MultiheadAttention has no children, and who calls it?",
        "the section on what hooks do not see in this chapter",
    ),
    _misconception(
        "children_only",
        ChildrenOnly,
        "recorded for stem.0, before a ReLU in place",
        "only the direct children are recorded",
        "Compare `named_children()` with `named_modules()` on a model with two levels. Which paths are missing?",
        "the section on paths in chapter 2",
    ),
    _misconception(
        "late_binding",
        LateBinding,
        "modules recorded, in the order of their return",
        "all hooks read the loop's variable, and it has its last value when they fire",
        "Every record stands under one path. When does the hook look up the name of its path, and what is it by then?",
        "the section on one function a path in this chapter",
    ),
    _misconception(
        "unknown_names_ignored",
        UnknownNamesIgnored,
        "a path that the model does not have",
        "a path that does not exist is passed over in silence",
        "Somebody writes `steam` for `stem`. When does your tool tell them?",
        "the card of this exercise",
    ),
    _misconception(
        "registered_before_all_names_are_known",
        RegisteredBeforeAllNamesAreKnown,
        "modules whose hooks differ after the KeyError",
        "a hook is registered before every name has been looked up, and stays when a later name is unknown",
        "Of two names, the model has the first and not the second. What has your code done when the KeyError comes?",
        "the section on the with block in this chapter",
    ),
    _misconception(
        "no_names_taken_for_all",
        NoNamesTakenForAll,
        "modules recorded with names=[]",
        "an empty list of names counts as none given",
        "Somebody asks for no path at all, with an empty list. Is that the same as None, and what does your test say?",
        "the card of this exercise",
    ),
    _misconception(
        "tuples_kept_as_lists",
        TuplesKeptAsLists,
        "form of what was recorded for an LSTM",
        "a tuple is recorded as a list",
        "Print `type(output)` for an LSTM, and the type of what your record holds for it. Who tells them apart later?",
        "the card of this exercise",
    ),
)

"""Wrong inspectors. Each changes one decision of one that is otherwise right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from autograder.exercise import Misconception


class _Inspector:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def inspect_model(self, model: nn.Module, *inputs: Any) -> list[dict[str, Any]]:
        named = self.modules(model)
        calls: dict[str, list] = {path: [] for path in named}
        modes = {module: module.training for module in model.modules()}
        handles = self.watch(named, calls)
        self.call(model, inputs, handles, modes)
        return [self.row(path, module, calls[path]) for path, module in named.items()]

    def modules(self, model: nn.Module) -> dict[str, nn.Module]:
        return dict(model.named_modules())

    def watch(self, named: Mapping[str, nn.Module], calls: dict[str, list]) -> list[Any]:
        def hook(path: str) -> Any:
            return lambda module, args, kwargs, output: self.note(
                calls[path], (self.passed(args, kwargs), self.returned(output))
            )

        return [module.register_forward_hook(hook(path), with_kwargs=True) for path, module in named.items()]

    def note(self, calls: list, call: tuple[list, list]) -> None:
        calls.append(call)

    def passed(self, args: tuple, kwargs: Mapping[str, Any]) -> list:
        return self.shapes((args, kwargs))

    def returned(self, output: Any) -> list:
        return self.shapes(output)

    def shapes(self, value: Any) -> list:
        if isinstance(value, torch.Tensor):
            return [tuple(value.shape)]
        if isinstance(value, Mapping):
            value = tuple(value.values())
        return [s for item in value for s in self.shapes(item)] if isinstance(value, (tuple, list)) else []

    def call(self, model: nn.Module, inputs: tuple, handles: list[Any], modes: Mapping[nn.Module, bool]) -> None:
        try:
            with torch.no_grad():
                self.switch(model)
                model(*inputs)
        finally:
            self.clean(model, handles)
            self.restore(model, modes)

    def switch(self, model: nn.Module) -> None:
        model.eval()

    def clean(self, model: nn.Module, handles: list[Any]) -> None:
        for handle in handles:
            handle.remove()

    def restore(self, model: nn.Module, modes: Mapping[nn.Module, bool]) -> None:
        for module, mode in modes.items():
            module.training = mode

    def own(self, module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters(recurse=False))

    def total(self, module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    def buffers(self, module: nn.Module) -> list[str]:
        return [name for name, _ in module.named_buffers(recurse=False)]

    def row(self, path: str, module: nn.Module, calls: list) -> dict[str, Any]:
        return {
            "path": path,
            "type": type(module).__name__,
            "own": self.own(module),
            "total": self.total(module),
            "buffers": self.buffers(module),
            "inputs": [passed for passed, _ in calls],
            "outputs": [returned for _, returned in calls],
        }


class TiedCountedTwice(_Inspector):
    def total(self, module: nn.Module) -> int:
        return sum(self.own(one) for one in module.modules())


class FrozenLeftOut(_Inspector):
    def own(self, module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters(recurse=False) if p.requires_grad)

    def total(self, module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters() if p.requires_grad)


class BuffersCounted(_Inspector):
    def own(self, module: nn.Module) -> int:
        return super().own(module) + sum(b.numel() for b in module.buffers(recurse=False))

    def total(self, module: nn.Module) -> int:
        return sum(t.numel() for t in (*module.parameters(), *module.buffers()))


class OwnGoesAllTheWay(_Inspector):
    def own(self, module: nn.Module) -> int:
        return self.total(module)


class LeavesOnly(_Inspector):
    def modules(self, model: nn.Module) -> dict[str, nn.Module]:
        return {path: module for path, module in super().modules(model).items() if not list(module.children())}


class OneLevelDeep(_Inspector):
    def modules(self, model: nn.Module) -> dict[str, nn.Module]:
        return {"": model, **dict(model.named_children())}


class OnlyWhatWasCalled(_Inspector):
    def inspect_model(self, model: nn.Module, *inputs: Any) -> list[dict[str, Any]]:
        return [row for row in super().inspect_model(model, *inputs) if row["outputs"]]


class LastCallOnly(_Inspector):
    def note(self, calls: list, call: tuple[list, list]) -> None:
        calls[:] = [call]


class KeywordsMissed(_Inspector):
    def passed(self, args: tuple, kwargs: Mapping[str, Any]) -> list:
        return self.shapes(args)


class FirstOutputOnly(_Inspector):
    def returned(self, output: Any) -> list:
        while isinstance(output, (tuple, list)):
            output = output[0]
        return self.shapes(output)


class PersistentBuffersOnly(_Inspector):
    def buffers(self, module: nn.Module) -> list[str]:
        return [name for name in super().buffers(module) if name in module.state_dict()]


class GlobalHook(_Inspector):
    def watch(self, named: Mapping[str, nn.Module], calls: dict[str, list]) -> list[Any]:
        paths = {id(module): path for path, module in named.items()}

        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            self.note(calls[paths[id(module)]], (self.passed(args, kwargs), self.returned(output)))

        return [register_module_forward_hook(hook, with_kwargs=True)]


class InTrainingMode(_Inspector):
    def switch(self, model: nn.Module) -> None:
        pass


class EverybodyTrainsAfterwards(_Inspector):
    def restore(self, model: nn.Module, modes: Mapping[nn.Module, bool]) -> None:
        model.train(modes[model])


class LeftInEval(_Inspector):
    def restore(self, model: nn.Module, modes: Mapping[nn.Module, bool]) -> None:
        pass


class HooksLeftBehind(_Inspector):
    def clean(self, model: nn.Module, handles: list[Any]) -> None:
        pass


class NotAfterAnError(_Inspector):
    def call(self, model: nn.Module, inputs: tuple, handles: list[Any], modes: Mapping[nn.Module, bool]) -> None:
        with torch.no_grad():
            self.switch(model)
            model(*inputs)
        self.clean(model, handles)
        self.restore(model, modes)


class EverybodysHooksCleared(_Inspector):
    def clean(self, model: nn.Module, handles: list[Any]) -> None:
        for module in model.modules():
            module._forward_hooks.clear()


class ErrorSwallowed(_Inspector):
    def call(self, model: nn.Module, inputs: tuple, handles: list[Any], modes: Mapping[nn.Module, bool]) -> None:
        try:
            super().call(model, inputs, handles, modes)
        except RuntimeError:
            pass


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made().inspect_model,))


misconceptions = (
    _misconception(
        "tied_counted_twice",
        TiedCountedTwice,
        "total with a tied weight",
        "the total adds up the own numbers of all modules, so a tied weight counts twice",
        "Tie a 100 by 16 embedding to the output layer. Does the file of the model's values grow by 1,600, or not? "
        "What does your total say?",
        "the section «One weight in two rows» in this chapter",
    ),
    _misconception(
        "frozen_left_out",
        FrozenLeftOut,
        "total with a frozen bias",
        "only parameters that require a gradient are counted",
        "Freeze the whole model. How much memory do its parameters need now, and what does your total say?",
        "the section «Counting with torch» in this chapter",
    ),
    _misconception(
        "buffers_counted",
        BuffersCounted,
        "own beside buffers",
        "buffers are counted as parameters",
        "How many values of a BatchNorm with 8 channels can an optimizer step, and how many does your row show?",
        "the section «Counting by hand» in this chapter",
    ),
    _misconception(
        "own_goes_all_the_way",
        OwnGoesAllTheWay,
        "own with a frozen bias",
        "own parameters include those of the children",
        "How many parameters does an `nn.Sequential` hold itself? What is different about your two columns, then?",
        "the section «The tree, walked» in this chapter",
    ),
    _misconception(
        "leaves_only",
        LeavesOnly,
        "paths, in order",
        "only modules without children get a row",
        "In `nn.MultiheadAttention`, which module is the leaf, and which one is called? Which has a row of yours?",
        "the section «Registered and never called» in this chapter",
    ),
    _misconception(
        "one_level_deep",
        OneLevelDeep,
        "paths, in order",
        "only the model and its direct children get a row",
        "A Sequential in a Sequential: which of torch's walks reaches the layer at the bottom?",
        "the section «The tree, walked» in this chapter",
    ),
    _misconception(
        "only_what_was_called",
        OnlyWhatWasCalled,
        "paths, in order",
        "a module that was not called has no row",
        "Somebody forgot to use a layer in `forward`. Which row of a table would show it, and do you have that row?",
        "the section «Two models that print alike» in this chapter",
    ),
    _misconception(
        "last_call_only",
        LastCallOnly,
        "outputs of modules called twice",
        "a second call of a module overwrites what the first one wrote down",
        "One activation is used after two layers of different width. How many pairs of shapes went through it, and "
        "how many are in its row?",
        "the section «One row, several calls» in this chapter",
    ),
    _misconception(
        "keywords_missed",
        KeywordsMissed,
        "inputs passed by keyword",
        "tensors passed by keyword are not seen",
        "A block calls its attention with `key` and `value` by name. How many tensors went in, and how many does "
        "your hook receive?",
        "chapter 4 on the options of register_forward_hook, and the section «What a hook is handed» in this chapter",
    ),
    _misconception(
        "first_output_only",
        FirstOutputOnly,
        "outputs in tuples",
        "of a tuple only the first tensor is written down",
        "How many tensors does one call of `nn.LSTM` return, and in how many layers of tuples?",
        "the section «What a hook is handed» in this chapter",
    ),
    _misconception(
        "persistent_buffers_only",
        PersistentBuffersOnly,
        "buffers of every kind",
        "buffers are read from the state_dict, which leaves some out",
        "A mask was registered so that it moves with the model and stays out of its file. Is it in your row?",
        "chapter 3 on persistent buffers",
    ),
    _misconception(
        "global_hook",
        GlobalHook,
        "outputs within torch's encoder layer",
        "one global hook for all modules, which torch's fused encoder layer does not look for",
        "In eval mode and without gradients, how many children of `nn.TransformerEncoderLayer` does your table see "
        "called? What does that layer check before it takes its short cut?",
        "the section «The short cut» in this chapter",
    ),
    _misconception(
        "in_training_mode",
        InTrainingMode,
        "changed statistics afterwards",
        "the model is called in the mode it has",
        "Inspect a model with BatchNorm twice. Is its state_dict the same before and after?",
        "the section «Looking without touching» in this chapter",
    ),
    _misconception(
        "everybody_trains_afterwards",
        EverybodyTrainsAfterwards,
        "changed modes afterwards, where one norm is frozen",
        "the model's own mode is given to every module at the end",
        "Somebody froze one BatchNorm by leaving it in eval mode while the rest trains. What mode has it after your "
        "inspection?",
        "the section «Looking without touching» in this chapter",
    ),
    _misconception(
        "left_in_eval",
        LeftInEval,
        "changed modes afterwards",
        "the model stays in eval mode",
        "Your inspection runs in the middle of training. Which layers behave differently in the next step?",
        "the section «Looking without touching» in this chapter",
    ),
    _misconception(
        "hooks_left_behind",
        HooksLeftBehind,
        "changed hooks afterwards",
        "the hooks are never removed",
        "After ten inspections, how many functions run each time a layer is called?",
        "chapter 4 on handles",
    ),
    _misconception(
        "not_after_an_error",
        NotAfterAnError,
        "changed hooks after an error",
        "what has to be put back is only put back when forward succeeds",
        "You inspect a model because its forward raises. In what state do you get it back?",
        "the section «Looking without touching» in this chapter",
    ),
    _misconception(
        "everybodys_hooks_cleared",
        EverybodysHooksCleared,
        "changed hooks afterwards, where somebody has some",
        "all forward hooks are cleared, those of others too",
        "A colleague's recorder is attached to the same layer. Does it still record after your inspection?",
        "chapter 4 on handles: what does each of them stand for?",
    ),
    _misconception(
        "error_swallowed",
        ErrorSwallowed,
        "an error in forward",
        "an error in forward is caught and not passed on",
        "The model cannot be called with these inputs. How would somebody who reads your table find out?",
        "the card of this exercise",
    ),
)

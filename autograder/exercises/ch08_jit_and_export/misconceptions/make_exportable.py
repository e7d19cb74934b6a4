"""Routers that were exported, and lost something on the way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from autograder.exercise import Misconception

_ANY_ROWS = {"x": {0: Dim.AUTO}}
_exported: dict[tuple, ExportedProgram] = {}
_MOST_KEPT = 100


def _remembered(variant: Callable[[nn.Module], nn.Module], model: nn.Module, rows: Tensor, **options: Any) -> Any:
    """Export a variant of the model, or return the program that was exported for the same model before.

    An export takes a quarter of a second, and several misconceptions differ only in what they do around it. Rows that
    are free give the same program for every example, as long as it has more than one row.
    """
    weights = tuple(float(value.double().sum()) for value in model.state_dict().values())
    key = (variant.__name__, weights, tuple(rows.shape), str(rows.device), str(options))
    if key not in _exported:
        if len(_exported) >= _MOST_KEPT:
            _exported.clear()
        _exported[key] = export(variant(copy.deepcopy(model)), (rows,), **options)
    return _exported[key]


class _Deciding(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.dropout, self.calm, self.loud, self.threshold = model.dropout, model.calm, model.loud, model.threshold

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(x)
        return torch.cond(x.abs().mean() > self.threshold, self.loud, self.calm, (x,))


class _Swapped(_Deciding):
    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(x)
        return torch.cond(x.abs().mean() > self.threshold, self.calm, self.loud, (x,))


class _Both(_Deciding):
    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(x)
        return torch.where(x.abs().mean() > self.threshold, self.loud(x), self.calm(x))


class _Decided(_Deciding):
    is_loud = False

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(x)
        return self.loud(x) if self.is_loud else self.calm(x)


class _Wrapper(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        x = self.model.dropout(x)
        return torch.cond(x.abs().mean() > self.model.threshold, self.model.loud, self.model.calm, (x,))


def _deciding(model: nn.Module) -> nn.Module:
    return _Deciding(model).eval()


def _deciding_in_training(model: nn.Module) -> nn.Module:
    return _Deciding(model).train()


def _swapped(model: nn.Module) -> nn.Module:
    return _Swapped(model).eval()


def _both(model: nn.Module) -> nn.Module:
    return _Both(model).eval()


def _wrapped(model: nn.Module) -> nn.Module:
    return _Wrapper(model).eval()


def _decided_calm(model: nn.Module) -> nn.Module:
    return _Decided(model).eval()


def _decided_loud(model: nn.Module) -> nn.Module:
    decided = _Decided(model).eval()
    decided.is_loud = True
    return decided


def _two_rows(example: Tensor) -> Tensor:
    return example[:1].repeat(2, 1)


def _branch_of_the_example(model: nn.Module, example: Tensor) -> ExportedProgram:
    is_loud = bool(example.abs().mean() > model.threshold)
    return _remembered(_decided_loud if is_loud else _decided_calm, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _rows_of_the_example(model: nn.Module, example: Tensor) -> ExportedProgram:
    return _remembered(_deciding, model, example)


def _example_as_it_is(model: nn.Module, example: Tensor) -> ExportedProgram:
    # One row is believed to be one row for ever, declared free or not: the same program as without the declaration.
    options = {"dynamic_shapes": _ANY_ROWS} if len(example) > 1 else {}
    return _remembered(_deciding, model, example[:2], **options)


def _both_branches(model: nn.Module, example: Tensor) -> ExportedProgram:
    return _remembered(_both, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _swapped_branches(model: nn.Module, example: Tensor) -> ExportedProgram:
    return _remembered(_swapped, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _training_mode(model: nn.Module, example: Tensor) -> ExportedProgram:
    return _remembered(_deciding_in_training, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _eval_for_good(model: nn.Module, example: Tensor) -> ExportedProgram:
    model.eval()
    return _remembered(_deciding, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _module_of_the_program(model: nn.Module, example: Tensor) -> nn.Module:
    return _remembered(_deciding, model, _two_rows(example), dynamic_shapes=_ANY_ROWS).module()


def _in_a_wrapper(model: nn.Module, example: Tensor) -> ExportedProgram:
    return _remembered(_wrapped, model, _two_rows(example), dynamic_shapes=_ANY_ROWS)


def _misconception(
    name: str, part: Callable, rejected_by: str, summary: str, question: str, read: str
) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (part,))


_SHAPES = "the section «One program for any number of rows» in this chapter"
_DECISIONS = "the section «A decision inside the program» in this chapter"

misconceptions = (
    _misconception(
        "branch_of_the_example",
        _branch_of_the_example,
        "output for loud rows, as many as in the example",
        "the decision is made in Python, once, for the example",
        "Your program was made from one example. Where in it could the other layer be found?",
        _DECISIONS,
    ),
    _misconception(
        "rows_of_the_example",
        _rows_of_the_example,
        "output for many rows",
        "the number of rows is fixed to the example's",
        "Print the program's `range_constraints`. Which sizes does it say are free?",
        _SHAPES,
    ),
    _misconception(
        "single_row_shown",
        _example_as_it_is,
        "output for many rows",
        "the rows are declared free, and an example with a single row is shown",
        "It works when the example has several rows. What does torch.export conclude from a size of exactly 1?",
        "the section «Zero and one are special» in this chapter",
    ),
    _misconception(
        "both_branches_run",
        _both_branches,
        "the program makes the decision itself",
        "both layers run for every input, and one result is thrown away",
        "How many of the two layers run in your program for one input? What would that cost if each were large?",
        _DECISIONS,
    ),
    _misconception(
        "branches_swapped",
        _swapped_branches,
        "output for calm rows, as many as in the example",
        "the two branches stand in the wrong order",
        "`torch.cond` takes two functions. Which one of them runs when the tensor is true?",
        _DECISIONS,
    ),
    _misconception(
        "exported_in_training_mode",
        _training_mode,
        "output for the example",
        "dropout is exported as it works in training",
        "In which mode was your module at the moment of the export, and can the program change it later?",
        "the section «A program has one mode» in this chapter",
    ),
    _misconception(
        "model_left_in_eval",
        _eval_for_good,
        "mode of the model afterwards",
        "the model that was handed in is left in eval mode",
        "Somebody exports in the middle of training and goes on. In which mode does their model learn?",
        "the section «A program has one mode» in this chapter",
    ),
    _misconception(
        "module_instead_of_program",
        _module_of_the_program,
        "what is returned",
        "the program's module is returned instead of the program",
        "What can be saved, inspected and lowered: what torch.export returned, or what its `module()` gives?",
        "the section «What torch.export returns» in this chapter",
    ),
    _misconception(
        "names_of_a_wrapper",
        _in_a_wrapper,
        "names of the program's parameters",
        "a wrapper puts a prefix before every name",
        "Compare the keys of the model's `state_dict()` with those of the program. Would a checkpoint of the one fit "
        "the other?",
        "the section «What torch.export returns» in this chapter",
    ),
)

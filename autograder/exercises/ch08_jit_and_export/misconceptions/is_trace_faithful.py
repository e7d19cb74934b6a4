"""Ways to trust a trace too early, or to spoil the model while asking."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from autograder.exercise import Misconception


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


def _compared(model: nn.Module, example: Tensor, others: list[Tensor], alike: Callable[[Tensor, Tensor], bool]) -> bool:
    mine = copy.deepcopy(model).eval()
    try:
        traced = torch.jit.trace(mine, example)
        return all(alike(mine(x), traced(x)) for x in others)
    except RuntimeError:
        return False


def _on_the_example(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    return _compared(model, example, [example], _alike)


def _by_warnings(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            torch.jit.trace(copy.deepcopy(model).eval(), example)
        except RuntimeError:
            return False
    return not any(issubclass(entry.category, torch.jit.TracerWarning) for entry in caught)


def _by_shapes(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    return _compared(model, example, others, lambda one, other: one.shape == other.shape)


def _by_values(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    return _compared(model, example, others, lambda one, other: torch.allclose(one, other, equal_nan=True))


def _nan_differs(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    return _compared(model, example, others, lambda one, other: one.shape == other.shape and torch.allclose(one, other))


def _as_it_comes(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    mine = copy.deepcopy(model)
    try:
        traced = torch.jit.trace(mine, example)
        return all(_alike(mine(x), traced(x)) for x in others)
    except RuntimeError:
        return False


def _eval_for_good(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    model.eval()
    try:
        traced = torch.jit.trace(model, example)
        return all(_alike(model(x), traced(x)) for x in others)
    except RuntimeError:
        return False


def _mode_put_back(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    mode = model.training
    try:
        return _eval_for_good(model, example, others)
    finally:
        model.train(mode)


def _errors_pass(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    mine = copy.deepcopy(model).eval()
    traced = torch.jit.trace(mine, example)
    return all(_alike(mine(x), traced(x)) for x in others)


def _values_raise(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    mine = copy.deepcopy(model).eval()
    traced = torch.jit.trace(mine, example)
    return all(torch.allclose(mine(x), traced(x)) for x in others)


def _first_decides(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    return _compared(model, example, others[:1], _alike)


def _misconception(
    name: str, part: Callable, rejected_by: str, summary: str, question: str, read: str
) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (part,))


_TRACING = "the section «What a trace keeps» in this chapter"

misconceptions = (
    _misconception(
        "compared_on_the_example",
        _on_the_example,
        "an if on the values",
        "trace and model are compared on the example alone",
        "The trace is a record of what happened for the example. On which input can it not fail?",
        _TRACING,
    ),
    _misconception(
        "warnings_decide",
        _by_warnings,
        "an if that all inputs answer alike",
        "a TracerWarning counts as unfaithful, silence as faithful",
        "Your function looks at warnings. Can you find a decision that warns and does no harm, and one that does harm "
        "and does not warn?",
        "the section «What the tracer says, and what it does not» in this chapter",
    ),
    _misconception(
        "shapes_decide",
        _by_shapes,
        "an if on the values",
        "only the shapes of the answers are compared",
        "Two branches may return tensors of one shape. What of them do you compare?",
        _TRACING,
    ),
    _misconception(
        "broadcast_comparison",
        _by_values,
        "a branch that drops an axis",
        "values are compared without shapes",
        "What does `torch.allclose(torch.ones(1, 3), torch.ones(3))` return, and would a caller of your model agree?",
        "the card of this exercise",
    ),
    _misconception(
        "comparison_that_raises",
        _values_raise,
        "an if on the number of rows",
        "answers of different shapes are compared value by value, which raises",
        "The model answers with ten columns and the trace with five. Can their values be compared at all, and what did "
        "you want to answer in that case?",
        "the card of this exercise",
    ),
    _misconception(
        "nan_is_never_equal",
        _nan_differs,
        "nan in the same places",
        "two nan in the same place count as different",
        "The model gives nan where the logarithm has no value, and so does its trace. Do they part there, and what "
        "does your comparison say?",
        "the card of this exercise",
    ),
    _misconception(
        "traced_in_training_mode",
        _as_it_comes,
        "dropout",
        "the model is traced and compared in training mode",
        "A new module is in training mode. Which layers answer twice differently to the same input there?",
        "the section «What a trace keeps» in this chapter, and chapter 3 on train() and eval()",
    ),
    _misconception(
        "model_left_in_eval",
        _eval_for_good,
        "mode of the model afterwards",
        "the model that was handed in is put into eval mode and stays there",
        "Somebody asks your function a question in the middle of training. In which mode does their model go on?",
        "chapter 3, train() and eval()",
    ),
    _misconception(
        "buffers_moved",
        _mode_put_back,
        "buffers of the model afterwards",
        "the model itself is traced and called, which moves its buffers",
        "Print the buffers of a model that counts its calls before and after you trace it. How often was it called?",
        "the section «What a trace keeps» in this chapter",
    ),
    _misconception(
        "errors_pass_through",
        _errors_pass,
        "a trace that raises",
        "an error while tracing or calling the trace leaves the function",
        "Which of your lines can raise, and what would the caller of a yes-or-no question want to hear then?",
        "the card of this exercise",
    ),
    _misconception(
        "first_input_decides",
        _first_decides,
        "only the last input parts",
        "the answer is given after the first of the other inputs",
        "How many inputs of the list has your function looked at when it returns `True`?",
        "the card of this exercise",
    ),
)

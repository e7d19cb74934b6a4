"""Wrong counts. Each is a line or two that one finds in scripts and in answers to the question of how many."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


def _counts(total: int, trainable: int, by_child: dict[str, int]) -> dict[str, Any]:
    return {"total": total, "trainable": trainable, "by_child": by_child}


def _listed(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return list(module.named_parameters())


def _lines(module: nn.Module, pairs: list[tuple[str, Any]]) -> dict[str, int]:
    lines = {name: 0 for name, _ in module.named_children()}
    for name, value in pairs:
        child, dot, _ = name.partition(".")
        if dot:
            lines[child] += value.numel()
    return lines


def _sum(pairs: list[tuple[str, Any]]) -> int:
    return sum(value.numel() for _, value in pairs)


def _trainable(pairs: list[tuple[str, Any]]) -> int:
    return sum(value.numel() for _, value in pairs if value.requires_grad)


def tied_counted_twice(module: nn.Module) -> dict[str, Any]:
    pairs = list(module.named_parameters(remove_duplicate=False))
    return _counts(_sum(pairs), _trainable(pairs), _lines(module, pairs))


def each_child_alone(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    lines = {name: sum(p.numel() for p in child.parameters()) for name, child in module.named_children()}
    return _counts(_sum(pairs), _trainable(pairs), lines)


def whole_state_dict(module: nn.Module) -> dict[str, Any]:
    stored = list(module.state_dict().items())
    return _counts(_sum(stored), _trainable(_listed(module)), _lines(module, stored))


def tensors_counted(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    trainable = [p for _, p in pairs if p.requires_grad]
    lines = {child: sum(name.startswith(f"{child}.") for name, _ in pairs) for child, _ in module.named_children()}
    return _counts(len(pairs), len(trainable), lines)


def frozen_called_trainable(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    return _counts(_sum(pairs), _sum(pairs), _lines(module, pairs))


def frozen_left_out(module: nn.Module) -> dict[str, Any]:
    pairs = [(name, p) for name, p in _listed(module) if p.requires_grad]
    return _counts(_sum(pairs), _sum(pairs), _lines(module, pairs))


def one_for_each_address(module: nn.Module) -> dict[str, Any]:
    seen, pairs = set(), []
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.data_ptr() not in seen:
            seen.add(parameter.data_ptr())
            pairs.append((name, parameter))
    return _counts(_sum(pairs), _trainable(pairs), _lines(module, pairs))


def one_for_each_value(module: nn.Module) -> dict[str, Any]:
    pairs: list[tuple[str, nn.Parameter]] = []
    for name, parameter in module.named_parameters(remove_duplicate=False):
        known = (other for _, other in pairs if other.shape == parameter.shape)
        if parameter.is_meta or not any(torch.equal(parameter, other) for other in known):
            pairs.append((name, parameter))
    return _counts(_sum(pairs), _trainable(pairs), _lines(module, pairs))


def childless_left_out(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    lines = {name: size for name, size in _lines(module, pairs).items() if size}
    return _counts(_sum(pairs), _trainable(pairs), lines)


def credited_to_the_last(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    places = {id(p): (name, p) for name, p in module.named_parameters(remove_duplicate=False)}
    return _counts(_sum(pairs), _trainable(pairs), _lines(module, list(places.values())))


def own_taken_for_a_child(module: nn.Module) -> dict[str, Any]:
    pairs = _listed(module)
    lines = {name: 0 for name, _ in module.named_children()}
    for name, parameter in pairs:
        first = name.split(".")[0]
        lines[first] = lines.get(first, 0) + parameter.numel()
    return _counts(_sum(pairs), _trainable(pairs), lines)


def _misconception(made: Any, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(made.__name__, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        tied_counted_twice,
        "total",
        "a tied weight is counted in every place",
        "Tie an output layer to an embedding. Does the model need more memory than before, or less? What does your "
        "total say?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        each_child_alone,
        "by_child",
        "each child is counted by itself, as if it shared nothing",
        "Add up the lines of your table and the module's own parameters. Is that your total?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        whole_state_dict,
        "total",
        "everything in state_dict() is counted",
        "What does the state_dict() of a module with a buffer hold that no optimizer steps?",
        "the section «The file knows names» in this chapter",
    ),
    _misconception(
        tensors_counted,
        "total",
        "the tensors are counted and not the numbers in them",
        "How many numbers does the weight of `nn.Linear(3, 2)` hold? And how many does your count add for it?",
        "the section «Counting» in this chapter",
    ),
    _misconception(
        frozen_called_trainable,
        "trainable",
        "frozen parameters are counted as trainable",
        "Freeze a layer. Which of your two numbers should change, and does it?",
        "the section «The walk» in this chapter: what is listed, and what is not?",
    ),
    _misconception(
        frozen_left_out,
        "total",
        "frozen parameters are left out of the total",
        "A frozen layer needs memory as well. Which of the two numbers should say so?",
        "the card of this exercise",
    ),
    _misconception(
        one_for_each_address,
        "total",
        "parameters are told apart by the address of their memory",
        "Print `data_ptr()` of two tensors on the meta device. What can the address of a tensor without memory tell?",
        "the section «Shapes without memory» in this chapter",
    ),
    _misconception(
        one_for_each_value,
        "total",
        "parameters with equal values are taken for one",
        "Two fresh LayerNorm layers hold the same ones and zeros. Are they tied?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        childless_left_out,
        "by_child",
        "a child without parameters has no line",
        "Which children does your table not mention, and what would a reader conclude from that?",
        "the card of this exercise",
    ),
    _misconception(
        credited_to_the_last,
        "by_child",
        "a tied weight is credited to the place where it is met last",
        "Under which of its two names does named_parameters() list a tied weight?",
        "the section «One weight in two places» in this chapter",
    ),
    _misconception(
        own_taken_for_a_child,
        "by_child",
        "the module's own parameter has a line among the children",
        "Which keys of your table are not the name of a child? What do the names of those parameters lack?",
        "the card of this exercise",
    ),
)

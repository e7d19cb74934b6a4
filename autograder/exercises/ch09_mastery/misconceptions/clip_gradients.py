"""Hooks that clip something else, at another moment, or for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


def _trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def _hook_all(model: nn.Module, hook: Callable[[torch.Tensor], Any]) -> list[Any]:
    return [parameter.register_post_accumulate_grad_hook(hook) for parameter in _trainable(model)]


def clip_grad_input(model: nn.Module, limit: float) -> list[Any]:
    def clip(module: nn.Module, grad_input: tuple, grad_output: tuple) -> tuple:
        return tuple(None if grad is None else grad.clamp(-limit, limit) for grad in grad_input)

    return [module.register_full_backward_hook(clip) for module in model if isinstance(module, nn.Linear)]


def clip_now(model: nn.Module, limit: float) -> list[Any]:
    nn.utils.clip_grad_value_(model.parameters(), limit)
    return []


def clip_each_contribution(model: nn.Module, limit: float) -> list[Any]:
    return [p.register_hook(lambda grad: grad.clamp(-limit, limit)) for p in _trainable(model)]


def clip_and_return(model: nn.Module, limit: float) -> list[Any]:
    return _hook_all(model, lambda parameter: parameter.grad.clamp_(-limit, limit))


def clip_a_copy(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp(-limit, limit)

    return _hook_all(model, clip)


def clip_the_norm(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        nn.utils.clip_grad_norm_([parameter], limit)

    return _hook_all(model, clip)


def clip_one_side(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp_(max=limit)

    return _hook_all(model, clip)


def clip_the_weights(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        with torch.no_grad():
            parameter.clamp_(-limit, limit)

    return _hook_all(model, clip)


def clip_frozen_too(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp_(-limit, limit)

    return [parameter.register_post_accumulate_grad_hook(clip) for parameter in model.parameters()]


def clip_without_biases(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp_(-limit, limit)

    return [module.weight.register_post_accumulate_grad_hook(clip) for module in model if hasattr(module, "weight")]


def clip_and_keep_the_last(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp_(-limit, limit)

    return _hook_all(model, clip)[-1:]


def _misconception(part: Any, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (part,))


_SECTION = "the section «Clipping what the optimizer sees» in this chapter"
_FIRST = "gradients after one backward"

misconceptions = (
    _misconception(
        clip_grad_input,
        "clips_what_flows_to_earlier_layers",
        "gradient of the input",
        "the gradient of each layer's input is clipped, not that of its weights",
        "A full backward hook gets `grad_input` and `grad_output`. Is the gradient of the weight one of them?",
        _SECTION,
    ),
    _misconception(
        clip_now,
        "clips_once_at_the_call",
        "handles came back",
        "the gradients are clipped when the function is called, and never again",
        "What is in `.grad` at the moment your function runs, and who clips at the next step?",
        _SECTION,
    ),
    _misconception(
        clip_each_contribution,
        "clips_before_the_sum",
        "gradients after a second backward on top",
        "each contribution is clipped, and the sum of two is not",
        "Two calls of `backward()` each bring a gradient just at your limit. How large is their sum in `.grad`?",
        "the section «The two hooks of a tensor» in this chapter",
    ),
    _misconception(
        clip_and_return,
        "returns_what_clamp_returns",
        _FIRST,
        "the hook returns a tensor where torch expects nothing",
        "What does `clamp_` return, and what does a function without a `return` give? Which of the two does this kind "
        "of hook allow?",
        "the section «The two hooks of a tensor» in this chapter",
    ),
    _misconception(
        clip_a_copy,
        "clips_a_copy",
        _FIRST,
        "the clipped values are computed and thrown away",
        "Which tensor holds the clipped values after your hook has run, and who will read it?",
        "chapter 3, «Updating a buffer»",
    ),
    _misconception(
        clip_the_norm,
        "scales_by_the_norm",
        _FIRST,
        "each gradient is made shorter as a whole, so that small values shrink too",
        "Take a gradient of 3 and 0.1 and a limit of 1. What should become of the 0.1?",
        "the card of this exercise",
    ),
    _misconception(
        clip_one_side,
        "clips_one_side",
        _FIRST,
        "large negative values pass",
        "What does your hook do with a gradient of -100?",
        "the card of this exercise",
    ),
    _misconception(
        clip_the_weights,
        "clips_the_weights",
        _FIRST,
        "the parameters are clipped instead of their gradients",
        "The hook is handed the parameter. Which of its two tensors did you change?",
        "the section «The two hooks of a tensor» in this chapter",
    ),
    _misconception(
        clip_frozen_too,
        "hooks_on_frozen_parameters",
        "handles came back",
        "a hook is asked for on parameters that get no gradient",
        "Run your function on a model whose first bias is frozen. What does torch say, and why?",
        "the section «The two hooks of a tensor» in this chapter",
    ),
    _misconception(
        clip_without_biases,
        "biases_forgotten",
        _FIRST,
        "only the weights are clipped",
        "Print the largest gradient of each named parameter. Which names are above the limit?",
        _SECTION,
    ),
    _misconception(
        clip_and_keep_the_last,
        "keeps_the_last_handle_only",
        "gradients once the second is removed",
        "most of the hooks can never be removed",
        "How many hooks did your function register, and how many handles did it hand back?",
        "chapter 4, «Handles»",
    ),
)

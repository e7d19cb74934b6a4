"""What the container exercises share: weights that both sides know, and questions that may end in an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.snapshot import Raised


def fill(module: nn.Module) -> nn.Module:
    """Give every parameter values that follow from its name alone, and return the module.

    Two models with the same names then hold the same numbers, in whatever order their layers were made.
    """
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            start = sum(map(ord, name)) % 97
            steps = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_(torch.sin(start + 1.7 * steps).reshape(parameter.shape))
    return module


def answer(question: Callable[[], Any]) -> Any:
    """Return what ``question`` returns, or the exception it raises as Raised, so that the probe can go on.

    NotImplementedError passes through: an unwritten part is not an answer.
    """
    try:
        return question()
    except NotImplementedError:
        raise
    except Exception as error:
        return Raised(type(error).__name__, tuple(base.__name__ for base in type(error).__mro__[1:-2]))


def keys(module: nn.Module) -> Any:
    """Return the keys of a module's state_dict, in order."""
    return answer(lambda: list(module.state_dict()))


def gradients(module: nn.Module) -> dict[str, Any]:
    """Return every parameter's gradient by name; None where there is none."""
    return {name: parameter.grad for name, parameter in module.named_parameters()}

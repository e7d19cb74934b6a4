"""What the three activation exercises share: one probe that goes to the ends of the number line, and its cases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import nn

from autograder.cases import Case, Draw
from autograder.observe import attempt


def cases(seed: int, device: str) -> list[Case]:
    """A batch of float32 rows, a float64 block and a single number, each with ends of its own."""
    draw = Draw(seed)
    settings = [
        ("float32 rows", (draw.integer(3, 5), draw.integer(4, 6)), torch.float32),
        ("float64 block", (2, draw.integer(2, 3), draw.integer(3, 4)), torch.float64),
        ("a single number", (), torch.float32),
    ]
    chosen = []
    for name, shape, dtype in settings:
        # 95 is past the point where exp leaves float32, and 1000 past the one where it leaves float64.
        ends = [-1000.0, -draw.number(95, 400), draw.number(95, 400), 1000.0]
        chosen.append(
            Case(
                f"{name}, {device}",
                seed + len(chosen),
                device,
                x=draw.normal(math.prod(shape), spread=2.0).reshape(shape).to(dtype),
                upstream=draw.normal(math.prod(shape), mean=1.0).reshape(shape).to(dtype),
                ends=torch.tensor(ends, dtype=dtype),
                infinite=torch.tensor([-torch.inf, torch.inf], dtype=dtype),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Drive one activation over ordinary numbers, both ends, zero and nan, forward and backward."""
    layer = make()
    yield "nn.Sequential takes it", attempt(lambda: nn.Sequential(layer))
    if isinstance(layer, nn.Module):
        yield "parameters and buffers", list(layer.state_dict())
    x = case.x.clone()
    yield "output of ordinary numbers", layer(x)
    yield "the input is left as it was", torch.equal(x, case.x)
    yield "output at ±100 and beyond", layer(case.ends.clone())
    yield "output at -inf and inf", layer(case.infinite.clone())
    yield "output of nan", layer(torch.full_like(case.ends, torch.nan))
    yield "gradient of ordinary numbers", _gradient(layer, case.x, case.upstream)
    yield "gradient at ±100 and beyond", _gradient(layer, case.ends, torch.ones_like(case.ends))
    zero = torch.zeros_like(case.ends)
    yield "gradient at zero", _gradient(layer, zero, torch.ones_like(zero))


def _gradient(layer: nn.Module, values: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor | str:
    """Return the gradient of the input, or a sentence when the output has lost its history."""
    leaf = values.clone().requires_grad_(True)
    # A layer inside a model gets the result of another, not a leaf.
    output = layer(leaf * 1)
    if not isinstance(output, torch.Tensor) or not output.requires_grad:
        return "no gradient: the output has no history"
    (output * upstream).sum().backward()
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


WEIGHTS = {
    "nn.Sequential takes it": 0.5,
    "parameters and buffers": 0.25,
    "output of ordinary numbers": 2.0,
    "the input is left as it was": 0.5,
    "output of nan": 0.5,
    "gradient of ordinary numbers": 1.5,
}

PREREQUISITES = ("a class with a forward", "elementwise operations", "backward() and .grad")
MAY_CHANGE = "the body of `forward`; an `__init__` is welcome, and takes no arguments"
COMMON = (
    "works for any shape, a single number included, and keeps the dtype",
    "at ±100, ±1000 and ±infinity the output is what the mathematics says; nan stays nan, because an activation that "
    "swallows a nan hides somebody's bug",
    "the gradient is finite at ±100 and ±1000, and right at exactly 0",
    "the input tensor is never changed, and there are no parameters and no buffers",
)

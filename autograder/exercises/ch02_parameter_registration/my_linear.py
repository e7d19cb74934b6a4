"""MyLinear against ``nn.Linear``: two parameters, one empty slot, and the very numbers that torch starts from."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt


def cases(seed: int, device: str) -> list[Case]:
    """Three layers: more inputs than outputs, fewer, and one without a bias."""
    draw = Draw(seed)
    settings = [("narrowing", -1, True), ("widening", 1, True), ("without bias", -1, False)]
    chosen = []
    for name, direction, bias in settings:
        small = draw.integer(2, 4)
        large = small + draw.integer(2, 4)
        inputs, outputs = (small, large) if direction > 0 else (large, small)
        rows, steps = draw.integer(3, 5), draw.integer(2, 3)
        chosen.append(
            Case(
                f"{name}, {inputs} to {outputs}, {device}",
                seed + 11 * len(chosen),
                device,
                inputs=inputs,
                outputs=outputs,
                bias=bias,
                x=draw.normal(rows, inputs),
                sequence=draw.normal(rows, steps, inputs),
                weight=draw.normal(outputs, inputs),
                offset=draw.normal(outputs),
                reset_seed=draw.integer(1, 10_000),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Drive one layer from its first random number through a step, a reload and a change of dtype; reset another."""
    layer = make(case.inputs, case.outputs, bias=case.bias)
    yield "parameters()", {name: list(p.shape) for name, p in layer.named_parameters()}
    yield "keys of state_dict()", list(layer.state_dict())
    first = {"weight": layer.weight, "bias": layer.bias}
    bits = {name: None if value is None else _bits(value) for name, value in first.items()}
    for name, value in first.items():
        yield f"{name} under one seed", value, 1e-6
    # A layer that draws one number too many is right itself and spoils every layer that is built after it.
    second = make(case.inputs, case.outputs, bias=case.bias)
    yield "weight of a second layer under one seed", second.weight, 1e-6
    yield "children of the layer", [name for name, _ in layer.named_children()]
    layer.to(case.device)
    with torch.no_grad():
        layer.weight.copy_(case.weight)
        if case.bias:
            layer.bias.copy_(case.offset)
    yield from _forward(layer, case)
    yield from _training(layer, case)
    yield from _copies(make, layer, case)
    if not case.bias:
        yield from _empty_slot(layer, case)
    # Whoever computes the same numbers in another order is told so by the bits, not by a puzzling 0.12 and 0.12.
    for name, value in bits.items():
        yield f"{name} under one seed, its bits read as integers", value
    yield from _reset(second, case)


def _bits(value: torch.Tensor) -> torch.Tensor:
    # A float of 4 bytes, read as an integer: neighbouring floats are neighbouring integers.
    return value.detach().clone().view(torch.int32)


def _reset(layer: nn.Module, case: Case) -> Iterator[tuple]:
    # On the CPU: on a GPU another generator would be asked, depending on where an answer draws.
    held = list(layer.parameters())
    torch.manual_seed(case.reset_seed)
    layer.reset_parameters()
    yield "weight after reset_parameters()", layer.weight, 1e-6
    yield "bias after reset_parameters()", layer.bias, 1e-6
    same = all(one is other for one, other in zip(held, layer.parameters(), strict=True))
    yield "reset_parameters() keeps the objects that an optimizer holds", same


def _forward(layer: nn.Module, case: Case) -> Iterator[tuple]:
    yield "output of (N, in_features)", layer(case.x)
    yield "output of (N, L, in_features)", layer(case.sequence)
    yield "output of a single row", layer(case.x[0])


def _training(layer: nn.Module, case: Case) -> Iterator[tuple]:
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = case.x.clone().requires_grad_(True)
    layer(x).pow(2).sum().backward()
    yield "gradient of the input", x.grad
    yield "gradient of weight", layer.weight.grad
    yield "gradient of bias", layer.bias.grad if case.bias else None
    optimizer.step()
    yield "output after one step", layer(case.x)


def _copies(make: type[nn.Module], layer: nn.Module, case: Case) -> Iterator[tuple]:
    reloaded = make(case.inputs, case.outputs, bias=case.bias).to(case.device)
    report = reloaded.load_state_dict(layer.state_dict(), strict=False)
    yield "keys missing on reload", list(report.missing_keys)
    yield "output after reload", reloaded(case.x)
    # The weights went through one step in float32, where the order of the sums is free; the tolerance covers that.
    yield "output after .double()", reloaded.double()(case.x.double()), 1e-4
    duplicate: Any = copy.deepcopy(layer)
    yield "output of a deepcopy", duplicate(case.x)


def _empty_slot(layer: nn.Module, case: Case) -> Iterator[tuple]:
    yield "a plain tensor assigned to the empty bias", attempt(lambda: setattr(layer, "bias", case.offset))
    layer.bias = nn.Parameter(case.offset)
    yield "parameters() after a bias was added", [name for name, _ in layer.named_parameters()]
    yield "output after a bias was added", layer(case.x)


card = Card(
    goal="Write the layer under all others, so that torch cannot tell its numbers from `nn.Linear`'s.",
    may_change="the bodies of the three methods; helper methods are welcome, the signatures stay",
    specification=(
        "parameters `weight` of shape (out_features, in_features) and `bias` of shape (out_features,)",
        "with `bias=False`, `bias` is an empty slot: it reads as `None`, refuses a plain tensor with `TypeError`, and "
        "takes an `nn.Parameter`, which is used from then on",
        "`reset_parameters` draws both anew, uniformly between -1/sqrt(in_features) and +1/sqrt(in_features), the "
        "weight first, into the parameters that are there; `__init__` calls it and draws nothing else",
        "under one seed the numbers are those of `nn.Linear`, bit for bit",
        "`forward` multiplies the last axis: input of any shape that ends in in_features",
        "every observation must equal that of `nn.Linear`; neither it nor `F.linear` may do the work",
    ),
    minutes=25,
    difficulty=2,
    importance=5,
    prerequisites=("nn.Parameter and register_parameter", "matrix product and transpose", "torch.manual_seed"),
)

hints = Hints(
    question=(
        "Set a seed, build `nn.Linear(4, 3)`, and note its weight and bias. Now set the same seed and fill a tensor of "
        "shape (3, 4) yourself. Which method fills an existing tensor with uniform numbers between two bounds, which "
        "bounds are they for four inputs, and what must be drawn next?"
    ),
    template=(
        "def __init__(self, in_features, out_features, bias=True):\n"
        "    super().__init__()\n"
        "    self.weight = nn.Parameter(...)       # room for the numbers; nothing is drawn yet\n"
        "    if bias:\n"
        "        self.bias = ...\n"
        "    else:\n"
        "        ...                               # a slot under the name 'bias' that holds nothing\n"
        "    self.reset_parameters()\n\n"
        "def reset_parameters(self):\n"
        "    bound = ...\n"
        "    with torch.no_grad():                 # why is this needed?\n"
        "        ...                               # in place, weight first\n\n"
        "def forward(self, x):\n"
        "    y = ...\n"
        "    return y if ... else ..."
    ),
)

exercise = Exercise(
    name="my_linear",
    chapter="ch02_parameter_registration",
    parts=("MyLinear",),
    kind="class",
    calls=(("MyLinear", (Placeholder("in_features"), Placeholder("out_features")), {"bias": True}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Linear,),
    weights={
        "parameters()": 3.0,
        "output of (N, in_features)": 2.0,
        "weight under one seed": 2.0,
        "weight under one seed, its bits read as integers": 0.5,
        "bias under one seed, its bits read as integers": 0.5,
        "children of the layer": 0.25,
        "keys of state_dict()": 0.5,
        "keys missing on reload": 0.25,
    },
    forbidden_classes=(nn.Linear,),
    forbidden=("torch.nn.functional.linear", "torch._C._nn.linear", "aten.linear"),
)

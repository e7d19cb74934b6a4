"""ResidualStack against a reference: layers that add to what they get, and a forward that Sequential cannot have."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._containers import answer, fill, gradients


def cases(seed: int, device: str) -> list[Case]:
    """A stack of two, a deeper one with a length axis in float64, and an empty one."""
    draw = Draw(seed)
    chosen = []
    for depth, dtype, dimensions in ((2, torch.float32, 2), (draw.integer(3, 5), torch.float64, 3), (0, None, 2)):
        dtype = dtype or torch.float32
        features = draw.integer(3, 5)
        shape = (draw.integer(2, 4), features) if dimensions == 2 else (2, draw.integer(2, 3), features)
        chosen.append(
            Case(
                f"depth {depth}, {'×'.join(map(str, shape))} {str(dtype).removeprefix('torch.')}, {device}",
                seed + len(chosen),
                device,
                features=features,
                depth=depth,
                dtype=dtype,
                x=draw.normal(*shape, spread=1.5).to(dtype),
                upstream=draw.normal(*shape, mean=1.0).to(dtype),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Run the stack forward and backward, look between its layers, train a step, convert and copy it."""
    net: Any = make(case.features, case.depth).to(case.device, case.dtype)
    yield "parameters()", {name: list(parameter.shape) for name, parameter in net.named_parameters()}
    kinds = {name: isinstance(getattr(net, name, None), nn.ModuleList) for name in ("norms", "layers")}
    yield "each is an nn.ModuleList", kinds
    fill(net)
    x = case.x.clone()
    with torch.no_grad():
        yield "output", net(x)
        yield "the input is left as it was", torch.equal(x, case.x)
        values = answer(lambda: net(case.x.clone(), return_all=True))
        yield "number of values with return_all", answer(lambda: len(values))
        yield "values with return_all", answer(lambda: list(values))
    leaf = case.x.clone().requires_grad_(True)
    (net(leaf * 1) * case.upstream).sum().backward()
    yield "gradient of the input", leaf.grad
    yield "gradients", gradients(net)
    if case.depth:
        yield "gradient through the value after the first layer", _through_the_middle(net, case)
        optimizer = torch.optim.SGD(list(net.parameters()) or [torch.zeros(1)], lr=0.01)
        optimizer.step()
        yield "output after an optimizer's step", net(case.x)
        yield "layers that ran, by their hooks", _layers_that_ran(net, case)
    yield "output of a deepcopy", answer(lambda: copy.deepcopy(net)(case.x))
    yield "output after .double()", answer(lambda: net.double()(case.x.double())), 1e-3


def _through_the_middle(net: Any, case: Case) -> Any:
    net.zero_grad()
    values = answer(lambda: net(case.x.clone(), return_all=True))
    if not isinstance(values, (list, tuple)) or len(values) < 2:
        return "there is no such value"
    if not values[1].requires_grad:
        return "no gradient: the value has no history"
    values[1].pow(2).sum().backward()
    return {name: gradient for name, gradient in gradients(net).items() if name.startswith(("layers.0", "norms.0"))}


def _layers_that_ran(net: Any, case: Case) -> Any:
    ran: list[str] = []

    def note(name: str) -> Any:
        return lambda module, inputs, output: ran.append(name)

    handles = [
        part.register_forward_hook(note(name)) for name, part in net.named_modules() if isinstance(part, nn.Linear)
    ]
    net(case.x)
    for handle in handles:
        handle.remove()
    return ran


class ReferenceResidualStack(nn.Module):
    """Pre-norm residual layers: each adds a linear map of the normalised, rectified value to the value itself."""

    def __init__(self, features: int, depth: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(features) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(depth))

    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """Return the value after one layer."""
        return x + self.layers[number](torch.relu(self.norms[number](x)))

    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        """Return the last value, or with ``return_all`` the input and the value after every layer."""
        values = [x]
        for number in range(len(self.layers)):
            values.append(self.step(number, values[-1]))
        return values if return_all else values[-1]


card = Card(
    goal="Write a stack whose layers add to what they are given, and which can show the values between them.",
    may_change="the bodies of `__init__` and `forward`; helper methods are welcome, the signatures stay",
    specification=(
        "`ResidualStack(features, depth)` has `depth` layers of its own: `norms`, an `nn.ModuleList` of "
        "`nn.LayerNorm(features)`, and `layers`, an `nn.ModuleList` of `nn.Linear(features, features)`",
        "each step turns x into `x + layer(relu(norm(x)))`; the last axis holds the features",
        "`net(x)` returns the last value; with depth 0 that is the input",
        "`net(x, return_all=True)` returns a list or tuple of `depth + 1` values: the input, and the value after every "
        "layer, all of them connected to the graph",
        "the input tensor is never changed",
        "compared with a reference of ours, with the same weights under the same names",
    ),
    minutes=15,
    difficulty=2,
    importance=4,
    prerequisites=("nn.ModuleList", "nn.LayerNorm and nn.Linear", "in-place and out-of-place operations"),
)

hints = Hints(
    question=(
        "Write down the value after one layer and after two, starting from x. Which x does the second layer add to? "
        "And if one line of yours changes x in place, what do the earlier entries of your list show afterwards?"
    ),
    template=(
        "def __init__(self, features, depth):\n"
        "    super().__init__()\n"
        "    self.norms = nn.ModuleList(... for _ in range(depth))\n"
        "    self.layers = ...             # depth different objects, not one object depth times\n\n"
        "def forward(self, x, return_all=False):\n"
        "    values = [x]\n"
        "    for norm, layer in zip(self.norms, self.layers):\n"
        "        x = ...                   # a new tensor\n"
        "        ...\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="residual_stack",
    chapter="ch06_containers",
    parts=("ResidualStack",),
    kind="class",
    calls=(("ResidualStack", (Placeholder("features"), Placeholder("depth")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(ReferenceResidualStack,),
    weights={
        "parameters()": 3.0,
        "each is an nn.ModuleList": 0.25,
        "output": 3.0,
        "gradients": 2.0,
        "number of values with return_all": 0.5,
        "output of a deepcopy": 0.5,
        "output after .double()": 0.5,
    },
    compared_with="a pre-norm residual stack of ours",
)

"""MyCustomLayer: one layer with a weight, a bias that may be absent, a counter and a child, each in its right place."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt

STEPS = 3


class CustomLayer(nn.Module):
    """The reference: a linear map, then a LayerNorm, and a count of the batches seen in training mode."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features**0.5)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)
        self.register_buffer("running_count", torch.tensor(0))
        self.norm = nn.LayerNorm(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (…, in_features) to (…, out_features)."""
        if self.training:
            self.running_count += 1
        return self.norm(nn.functional.linear(x, self.weight, self.bias))


def cases(seed: int, device: str) -> list[Case]:
    """Two layers: rows with a bias, and sequences without one."""
    draw = Draw(seed)
    chosen = []
    for bias in (True, False):
        in_features, out_features = draw.integer(2, 4), draw.integer(5, 7)
        shape = (draw.integer(4, 6), in_features) if bias else (2, draw.integer(3, 5), in_features)
        start = {"weight": draw.normal(out_features, in_features), "norm.weight": 1 + 0.3 * draw.normal(out_features)}
        start["norm.bias"] = draw.normal(out_features)
        if bias:
            start["bias"] = draw.normal(out_features)
        chosen.append(
            Case(
                f"{'with' if bias else 'without'} a bias, input {'×'.join(map(str, shape))}, {device}",
                seed + bias,
                device,
                sizes=(in_features, out_features),
                bias=bias,
                start=start,
                x=draw.normal(*shape, mean=0.5, spread=2.0),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Read the registries, train, evaluate, copy, convert and reload one layer."""
    layer: Any = make(*case.sizes, bias=case.bias).to(case.device)
    yield "parameters()", {name: list(p.shape) for name, p in layer.named_parameters()}
    yield "buffers()", {name: list(b.shape) for name, b in layer.named_buffers()}
    yield "dtypes in state_dict()", {name: value.dtype for name, value in sorted(layer.state_dict().items())}
    yield "children", {name: type(child).__name__ for name, child in layer.named_children()}
    yield "bias at the start", layer.bias.detach() if case.bias else layer.bias
    if case.bias:
        # Enough numbers that the spread of a right start is known to a few percent.
        yield "spread of a large weight at the start, times √in", _spread(make(100, 80).weight), 0.15
    layer.double()
    yield "dtype of running_count after double()", layer.running_count.dtype
    layer.float()
    _fill(layer, case)
    live = layer.state_dict()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        y = layer(case.x)
        yield f"output of training step {step}", y
        (y - 1).pow(2).mean().backward()
        optimizer.step()
    yield "gradients of the last step", {name: p.grad for name, p in sorted(layer.named_parameters())}
    yield "running_count after training", layer.running_count
    yield "a state_dict() taken before the steps follows the count", live["running_count"]
    layer.eval()
    yield "output in eval mode", layer(case.x)
    yield "running_count after eval", layer.running_count
    yield from _copies(make, layer, case)


def _spread(weight: torch.Tensor) -> float:
    return float(weight.detach().std()) * weight.shape[1] ** 0.5


def _fill(layer: Any, case: Case) -> None:
    with torch.no_grad():
        for name, value in case.start.items():
            owner, _, last = name.rpartition(".")
            getattr(layer.get_submodule(owner), last).copy_(value.to(case.device))


def _copies(make: type[nn.Module], layer: Any, case: Case) -> Iterator[tuple]:
    reloaded: Any = make(*case.sizes, bias=case.bias).to(case.device)
    report = reloaded.load_state_dict(layer.state_dict(), strict=False)
    yield "keys missing on reload", list(report.missing_keys)
    yield "eval output after reload", reloaded.eval()(case.x)
    yield "running_count after reload", reloaded.running_count
    duplicate: Any = copy.deepcopy(layer).train()
    duplicate(case.x)
    yield "running_count of a deepcopy, one batch later", duplicate.running_count
    yield "running_count of the original meanwhile", layer.running_count
    if not case.bias:
        plain = torch.zeros(case.sizes[1], device=case.device)
        yield "a plain tensor assigned to the empty bias", attempt(lambda: setattr(layer, "bias", plain))
        layer.bias = nn.Parameter(plain + 2)
        yield "output once a Parameter is put there", layer(case.x)
        yield "parameters() then", sorted(name for name, _ in layer.named_parameters())


card = Card(
    goal="Write one layer that holds each kind of thing a module can hold, every one in its right place.",
    may_change="the bodies of `__init__` and `forward`; helper methods are welcome, the signatures stay",
    specification=(
        "`forward` maps `(…, in_features)` to `(…, out_features)`: first `x Wᵀ + b`, then the norm",
        "`weight` is a parameter of shape (out, in); it starts normal with standard deviation 1 / √in",
        "`bias` is a parameter that starts at zeros; with `bias=False` the layer keeps an empty parameter slot of that "
        "name: no key in the file, a plain tensor assigned to it is refused, an `nn.Parameter` is taken and used",
        "`norm` is an `nn.LayerNorm(out_features)`, registered as a child",
        "`running_count` is an int64 scalar buffer that counts the calls in training mode, in place",
        "`nn.Linear` may not do the work; `F.linear` or `@` may",
    ),
    minutes=20,
    difficulty=2,
    importance=5,
    prerequisites=("nn.Parameter and register_parameter", "register_buffer", "self.training"),
)

hints = Hints(
    question=(
        "For each of the four things ask three questions: is it trained, is it in the file, does it move? Which call "
        "of `nn.Module` gives exactly that combination, and which one keeps a place free for a parameter to come?"
    ),
    template=(
        "def __init__(self, in_features, out_features, bias=True):\n"
        "    super().__init__()\n"
        "    self.weight = nn.Parameter(... / in_features**0.5)\n"
        "    if bias:\n"
        "        self.bias = ...\n"
        "    else:\n"
        "        self.register_...('bias', None)\n"
        "    self.register_...('running_count', ...)\n"
        "    self.norm = ...\n\n"
        "def forward(self, x):\n"
        "    if ...:\n"
        "        self.running_count ...          # the tensor stays the same object\n"
        "    out = ...\n"
        "    if self.bias is not None:\n"
        "        out = ...\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="my_custom_layer",
    chapter="ch09_mastery",
    parts=("MyCustomLayer",),
    kind="class",
    calls=(("MyCustomLayer", (3, 5), {"bias": False}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(CustomLayer,),
    weights={
        "parameters()": 2.0,
        "buffers()": 2.0,
        "output of training step 1": 2.0,
        "running_count after*": 0.5,
        "running_count of*": 0.5,
        "keys missing on reload": 0.5,
    },
    forbidden_classes=(nn.Linear,),
    compared_with="a layer that puts everything in its place",
)

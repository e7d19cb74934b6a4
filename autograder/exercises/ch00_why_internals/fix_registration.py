"""FixedModel: the same model and the same attributes, with nothing hidden from torch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints

HEADS = {"price": 1, "kind": 3}


class RegisteredModel(nn.Module):
    """The reference: what the broken model of the chapter computes, with every layer and the scale registered."""

    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.scale = nn.Parameter(torch.ones(width))
        self.heads = nn.ModuleDict({name: nn.Linear(width, size) for name, size in HEADS.items()})

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return one output a head."""
        x = torch.relu(self.entry(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        x = x * self.scale
        return {name: self.heads[name](x) for name in self.heads}


def cases(seed: int, device: str) -> list[Case]:
    """Two models of different size; both have at least two hidden layers, so that a shared one shows."""
    draw = Draw(seed)
    chosen = []
    for depth in (2, draw.integer(3, 4)):
        features, width = draw.integer(2, 4), draw.integer(5, 7)
        chosen.append(
            Case(
                f"features={features}, width={width}, depth={depth}, {device}",
                seed + depth,
                device,
                sizes=(features, width, depth),
                x=draw.normal(6, features),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Ask the model what it holds, then train, save, freeze, copy and convert it."""
    model = make(*case.sizes)
    yield "names of the parameters", _shapes(model.named_parameters())
    yield "numbers that can be trained", sum(parameter.numel() for parameter in model.parameters())
    yield "keys of the state_dict", _shapes(model.state_dict().items())
    yield "scale at the start", model.scale.detach()
    model.to(case.device)
    _fill(model)
    yield "outputs", _outputs(model, case.x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        optimizer.zero_grad()
        _loss(model, case.x).backward()
        optimizer.step()
    yield "outputs after two steps", _outputs(model, case.x)
    yield "parameters without a gradient", sorted(name for name, p in model.named_parameters() if p.grad is None)
    model.zero_grad()
    yield "the scale's gradient after zero_grad()", model.scale.grad
    yield "a new model that loads the state", _outputs(_loaded(make, model, case), case.x)
    yield from _copied(model, case)
    model.eval()
    yield "hidden layers in training mode after eval()", sum(layer.training for layer in model.hidden)
    model.double()
    yield "dtype of the scale after double()", model.scale.dtype
    yield "outputs after double()", _outputs(model, case.x.double()), 1e-4
    model.requires_grad_(False)
    yield "outputs still ask for gradients when frozen", any(y.requires_grad for y in model(case.x.double()).values())


def _shapes(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, list[int]]:
    # A dict, because what is missing from it is told by name, and a long list would be cut.
    return {name: list(tensor.shape) for name, tensor in sorted(named, key=lambda pair: pair[0])}


def _fill(model: Any) -> None:
    """Give every weight known values, found by its attribute and not by its registration, so that every
    implementation starts alike, whatever it hides and in whichever order it was built."""
    layers = [model.entry, *model.hidden, *(model.heads[name] for name in HEADS)]
    tensors = [parameter for layer in layers for parameter in layer.parameters()]
    with torch.no_grad():
        for number, tensor in enumerate(tensors):
            count = torch.arange(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
            tensor.copy_((0.5 * torch.sin(1.7 * count + 0.9 * number + 0.3)).view_as(tensor))


def _outputs(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {name: model(x)[name] for name in sorted(model(x))}


def _loss(model: Any, x: torch.Tensor) -> torch.Tensor:
    return sum((y - 1).pow(2).mean() for y in model(x).values())


def _loaded(make: type[nn.Module], model: nn.Module, case: Case) -> nn.Module:
    new = make(*case.sizes).to(case.device)
    _fill(new)
    new.load_state_dict(model.state_dict())
    return new


def _copied(model: Any, case: Case) -> Iterator[tuple]:
    copied = copy.deepcopy(model)
    optimizer = torch.optim.SGD(copied.parameters(), lr=0.05)
    _loss(copied, case.x).backward()
    optimizer.step()
    yield "outputs of a deep copy, one step later", _outputs(copied, case.x)
    yield "outputs of the original meanwhile", _outputs(model, case.x)


card = Card(
    goal="Mend `BrokenModel` so that torch sees everything that it should train.",
    may_change="anything inside the class; the attribute names, the arguments and the results stay as they are",
    specification=(
        "every layer and the scale are registered under their names: the keys of the file are `entry.weight`, "
        "`hidden.0.weight`, `scale`, `heads.price.weight` and so on",
        "`depth` separate hidden layers, whatever `depth` is; `hidden[0]` is the first and `heads['price']` is a head",
        "`scale` starts at ones and is trained like the layers",
        "the outputs are those of `BrokenModel` with the same weights: a relu after `entry` and after every hidden "
        "layer, then the scale, then the heads, as a dict with the keys `price` and `kind`",
        "training, saving, freezing, `eval()`, `double()` and a deep copy reach every part, without extra code",
    ),
    minutes=15,
    difficulty=2,
    importance=5,
    prerequisites=("nn.ModuleList and nn.ModuleDict", "nn.Parameter"),
)

hints = Hints(
    question=(
        "Print `[name for name, _ in BrokenModel(2, 3, 2).named_parameters()]` and lay it beside the four lines of "
        "`__init__`. Which lines left no name behind, and what kind of value does each of them assign?"
    ),
    template=(
        "def __init__(self, features, width, depth):\n"
        "    super().__init__()\n"
        "    self.entry = nn.Linear(features, width)\n"
        "    self.hidden = nn....(nn.Linear(width, width) for _ in range(depth))\n"
        "    self.scale = nn....(torch.ones(width))\n"
        "    self.heads = nn....({'price': nn.Linear(width, 1), 'kind': ...})"
    ),
)

exercise = Exercise(
    name="fix_registration",
    chapter="ch00_why_internals",
    parts=("FixedModel",),
    kind="class",
    calls=(("FixedModel", (2, 3, 2), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(RegisteredModel,),
    weights={
        "names of the parameters": 3.0,
        "outputs": 2.0,
        "outputs after two steps": 3.0,
        "keys of the state_dict": 2.0,
        "scale at the start": 0.5,
        "parameters without a gradient": 0.5,
        "outputs of the original meanwhile": 0.25,
    },
    compared_with="a model that registers all its parts",
)

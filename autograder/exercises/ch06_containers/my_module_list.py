"""MyModuleList against ``nn.ModuleList``: a list whose items are registered, and stay so whatever is done to it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._containers import answer, fill, keys
from autograder.observe import attempt


class Stack(nn.Module):
    """A model that holds the list, walks over it, and adds what each layer gives to what it got."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


def cases(seed: int, device: str) -> list[Case]:
    """A list of three or four layers, and a long one whose numbers have two digits."""
    draw = Draw(seed)
    chosen = []
    for name, count in (("short", draw.integer(3, 4)), ("long", draw.integer(11, 13))):
        width = draw.integer(2, 3)
        chosen.append(
            Case(
                f"{name}, {count} layers of width {width}, {device}",
                seed + len(chosen),
                device,
                count=count,
                width=width,
                x=draw.normal(draw.integer(2, 4), width),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Build a list inside a model, train it, look items up, then change the list in every way it offers."""
    source = [nn.Linear(case.width, case.width) for _ in range(case.count)]
    layers: Any = make(source)
    yield "keys of state_dict()", keys(layers)
    yield "it can be assigned to a model", answer(lambda: list(Stack(layers)._modules))
    net = Stack(layers).to(case.device)
    fill(nn.ModuleList(source).to(case.device))
    yield "output of a model that walks over it", net(case.x)
    net(case.x).pow(2).sum().backward()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01) if list(net.parameters()) else None
    if optimizer is not None:
        optimizer.step()
    yield "output after an optimizer's step", net(case.x)
    yield "output of a deepcopy", answer(lambda: copy.deepcopy(net)(case.x))
    yield from _look_ups(make, layers, source)
    yield from _changes(layers, source, case)
    yield "keys of one built from a generator", answer(lambda: keys(make(nn.Linear(1, 1) for _ in range(3))))
    yield "len() and loop of one layer, twice in the list", answer(lambda: _twice(make))
    yield "len() of an empty one", answer(lambda: len(make()))
    yield "a function instead of a module", attempt(lambda: make([nn.ReLU(), torch.relu]))


def _twice(make: type[nn.Module]) -> list[int]:
    layers: Any = make([layer := nn.Linear(1, 1), layer])
    return [len(layers), sum(part is layer for part in layers)]


def _look_ups(make: type[nn.Module], layers: Any, source: list[nn.Module]) -> Iterator[tuple]:
    yield "len(layers)", answer(lambda: len(layers))
    yield "layers[1] is the second layer", answer(lambda: layers[1] is source[1])
    yield "layers[-1] is the last layer", answer(lambda: layers[-1] is source[-1])
    yield "layers[100], which is not there", attempt(lambda: layers[100])
    yield "a slice is a list of the same kind", answer(lambda: isinstance(layers[1:], make))
    yield "keys of layers[1:]", answer(lambda: list(layers[1:].state_dict()))


def _changes(layers: Any, source: list[nn.Module], case: Case) -> Iterator[tuple]:
    names = {id(layer): f"layer {number}" for number, layer in enumerate(source)}

    def shown() -> dict[str, Any]:
        """Return the registered names with the layer behind each, and the order in which iteration gives them."""
        registered = {name: names.get(id(part), "unknown") for name, part in layers.named_children()}
        return {"registered": registered, "in the loop": [names.get(id(part), "unknown") for part in layers]}

    def new(name: str) -> nn.Module:
        layer = nn.Linear(1, 1).to(case.device)
        names[id(layer)] = name
        source_of_new.append(layer)
        return layer

    source_of_new: list[nn.Module] = []
    source.append(new("added to the Python list"))
    yield "after an append to the Python list it was made from", answer(shown)
    yield "after append", answer(lambda: (layers.append(new("the appended layer")), shown())[1])
    yield "after extend", answer(lambda: (layers.extend([new("first of two"), new("second of two")]), shown())[1])
    yield "after layers[0] = …", answer(lambda: (layers.__setitem__(0, new("the layer that was set")), shown())[1])
    yield "after insert(1, …)", answer(lambda: (layers.insert(1, new("the inserted layer")), shown())[1])
    yield "after del layers[2]", answer(lambda: (layers.__delitem__(2), shown())[1])
    yield "after del and append", answer(lambda: (layers.append(new("appended at the end")), shown())[1])


card = Card(
    goal="Write a list that torch can see into, and that stays right when it grows, shrinks and changes.",
    may_change="the bodies of the methods; helper methods are welcome, the signatures stay",
    specification=(
        "`MyModuleList(modules)` takes any iterable, a generator too, or nothing, and registers what it gives under "
        "`0`, `1`, `2` and so on, so that a file of `nn.ModuleList` fits",
        "what is done later to the Python list it was made from does not matter",
        "`len(layers)`, iteration in order, `layers[1]`, `layers[-1]`; an index outside raises `IndexError`, and a "
        "layer that stands in the list twice counts twice",
        "a slice is a `MyModuleList` of the same layers, numbered from 0",
        "`append(layer)`, `extend(layers)`, `insert(index, layer)` for an index from 0 to the length, "
        "`layers[index] = layer` and `del layers[index]`",
        "after each of these the names are again `0` to the length less one, in the order of the loop",
        "anything that is no module raises `TypeError` when the list is built",
        "compared with `nn.ModuleList`; it may not be inherited from",
    ),
    minutes=25,
    difficulty=3,
    importance=4,
    prerequisites=("add_module and _modules", "Python's list methods", "__setitem__ and __delitem__"),
)

hints = Hints(
    question=(
        "After `del layers[1]` of three layers the names 0 and 2 are left. Under which name would the next append "
        "register its layer, and whom would it meet there? What would you have to do after every deletion and "
        "insertion, and could all of your methods go through that one step?"
    ),
    template=(
        "def _replace_all(self, modules):\n"
        "    modules = ...             # a list of your own, whatever came in\n"
        "    ...                       # forget every name that is registered now\n"
        "    for number, module in enumerate(modules):\n"
        "        ...                   # register it by the method that checks the type\n\n"
        "def insert(self, index, module):\n"
        "    modules = list(self)      # what a Python list can do, let it do\n"
        "    ...\n"
        "    self._replace_all(modules)\n\n"
        "def __iter__(self):\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="my_module_list",
    chapter="ch06_containers",
    parts=("MyModuleList",),
    kind="class",
    calls=(("MyModuleList", (), {}), ("MyModuleList", (Placeholder("modules"),), {})),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.ModuleList,),
    weights={
        "keys of state_dict()": 3.0,
        "it can be assigned to a model": 2.0,
        "output of a model that walks over it": 2.0,
        "output after an optimizer's step": 2.0,
        "len(layers)": 0.5,
        "layers[1] is the second layer": 0.5,
        "layers[-1] is the last layer": 0.5,
        "layers[100], which is not there": 0.5,
        "len() of an empty one": 0.5,
    },
    forbidden_classes=(nn.ModuleList, nn.Sequential, nn.ModuleDict),
)

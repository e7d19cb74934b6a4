"""MySequential against ``nn.Sequential``: registered under the same names, run in order, through ``__call__``."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._containers import answer, fill, gradients, keys
from autograder.observe import attempt


def cases(seed: int, device: str) -> list[Case]:
    """A short stack, one in float64, and one with names of its own."""
    draw = Draw(seed)
    chosen = []
    for name, dtype, named in (
        ("numbered", torch.float32, False),
        ("float64", torch.float64, False),
        ("named", torch.float32, True),
    ):
        widths = [draw.integer(2, 3), draw.integer(4, 5), draw.integer(6, 7)]
        rows = draw.integer(4, 6)
        chosen.append(
            Case(
                f"{name}, widths {widths}, {device}",
                seed + len(chosen),
                device,
                widths=widths,
                dtype=dtype,
                named=named,
                x=draw.normal(rows, widths[0], spread=2.0).to(dtype),
                middle=draw.normal(rows, widths[1]).to(dtype),
            )
        )
    return chosen


def _layers(case: Case) -> list[nn.Module]:
    first, second, third = case.widths
    return [
        nn.Linear(first, second),
        nn.BatchNorm1d(second),
        nn.Tanh(),
        nn.Linear(second, third),
    ]


NAMES = ("first", "normal", "bend", "last")


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Build a stack, train a step, evaluate, look layers up, replace one, copy it, and try what must be refused."""
    layers = _layers(case)
    net: Any = make(OrderedDict(zip(NAMES, layers, strict=True))) if case.named else make(*layers)
    yield "keys of state_dict()", keys(net)
    net = net.to(case.device, case.dtype)
    fill(nn.ModuleList(layers).to(case.device, case.dtype))
    yield "output in training mode", net(case.x)
    net(case.x).pow(2).sum().backward()
    yield "gradients", gradients(net)
    net.eval()
    yield "output in eval mode", net(case.x)
    yield "the layers are the ones handed in", [any(part is layer for part in net.modules()) for layer in layers]
    yield from _calls(make, net, layers, case)
    yield from _look_ups(net, layers, case)
    yield "output of a deepcopy", answer(lambda: copy.deepcopy(net)(case.x))
    setattr(net, NAMES[2] if case.named else "2", nn.ReLU())
    yield "output after a layer is replaced", net(case.x)
    yield "an empty one gives its input back", answer(lambda: make()(case.x))
    yield "a function instead of a module", attempt(lambda: make(nn.ReLU(), torch.relu))
    yield "two inputs", attempt(lambda: net(case.x, case.x))


def _calls(make: type[nn.Module], net: Any, layers: list[nn.Module], case: Case) -> Iterator[tuple]:
    called: list[int] = []
    handles = [
        layer.register_forward_hook(lambda module, inputs, output, number=number: called.append(number))
        for number, layer in enumerate(layers)
    ]
    net(case.x)
    for handle in handles:
        handle.remove()
    yield "layers whose forward hooks fire", called
    same = fill(nn.Linear(case.widths[0], case.widths[0])).to(case.device, case.dtype)
    yield "one layer, twice in the stack", answer(lambda: make(same, nn.Tanh(), same)(case.x))


def _look_ups(net: Any, layers: list[nn.Module], case: Case) -> Iterator[tuple]:
    yield "len(net)", answer(lambda: len(net))
    yield "net[0] is the first layer", answer(lambda: net[0] is layers[0])
    yield "net[-1] is the last layer", answer(lambda: net[-1] is layers[-1])
    yield "net[4], which is not there", attempt(lambda: net[4])
    yield "iteration gives the layers", answer(lambda: [type(layer).__name__ for layer in net])
    yield "net[2:] can be called", answer(lambda: net[2:](case.middle))
    yield "keys of net[2:]", answer(lambda: list(net[2:].state_dict()))
    yield "net[:2] shares its layers", answer(lambda: next(net[:2].parameters()) is layers[0].weight)


card = Card(
    goal="Write the container that runs its layers in order, so that files, hooks and slices take it for torch's.",
    may_change="the bodies of the methods; helper methods are welcome, the signatures stay",
    specification=(
        "`MySequential(a, b, c)` registers its layers under the names `0`, `1`, `2`; a single `OrderedDict` brings "
        "names of its own",
        "the keys of `state_dict()` equal those of `nn.Sequential`, so that one's file fits the other",
        "`net(x)` takes one input, hands it through all layers in order, and returns what the last one gives; an empty "
        "stack returns its input",
        "layers are called, so that their hooks fire, and a layer that stands twice runs twice",
        "`len(net)`, iteration, `net[0]`, `net[-1]` work; an index outside raises `IndexError`",
        "a slice is a `MySequential` of the same layers, not of copies, which keep their names",
        "replacing a layer by assignment (`setattr(net, '2', nn.ReLU())`) takes effect",
        "anything that is no module raises `TypeError` when the stack is built",
        "compared with `nn.Sequential`; neither it nor `nn.ModuleList` may be inherited from",
    ),
    minutes=25,
    difficulty=3,
    importance=4,
    prerequisites=("add_module and _modules", "__call__ or forward", "__len__, __iter__ and __getitem__"),
)

hints = Hints(
    question=(
        "Where does `nn.Module` keep its children, and under which names? Suppose you keep a list of the layers "
        "beside it: who tells the list when somebody replaces a child? And what does `children()` do with a "
        "layer that stands twice?"
    ),
    template=(
        "def __init__(self, *layers):\n"
        "    super().__init__()\n"
        "    named = ...               # pairs of name and layer: from the OrderedDict, or numbered\n"
        "    for name, layer in named:\n"
        "        ...                   # the method of nn.Module that registers under any name, and checks the type\n\n"
        "def __iter__(self):\n"
        "    return iter(...)          # the one place where the layers are kept, duplicates and all\n\n"
        "def __getitem__(self, index):\n"
        "    if isinstance(index, slice):\n"
        "        return MySequential(OrderedDict(...))\n"
        "    return ...                # a plain list already knows about -1 and IndexError\n\n"
        "def forward(self, x):\n"
        "    ..."
    ),
)

exercise = Exercise(
    name="my_sequential",
    chapter="ch06_containers",
    parts=("MySequential",),
    kind="class",
    calls=(("MySequential", (Placeholder("layer"), Placeholder("another_layer")), {}), ("MySequential", (), {})),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Sequential,),
    weights={
        "keys of state_dict()": 3.0,
        "output in training mode": 3.0,
        "gradients": 2.0,
        "output in eval mode": 2.0,
        "layers whose forward hooks fire": 2.0,
        "len(net)": 0.5,
        "net[0] is the first layer": 0.5,
        "net[-1] is the last layer": 0.5,
        "iteration gives the layers": 0.5,
        "keys of net[2:]": 0.5,
        "net[4], which is not there": 0.5,
        "an empty one gives its input back": 0.5,
        "two inputs": 0.25,
    },
    forbidden_classes=(nn.Sequential, nn.ModuleList, nn.ModuleDict),
)

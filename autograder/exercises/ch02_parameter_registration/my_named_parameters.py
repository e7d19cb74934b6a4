"""my_named_parameters against ``nn.Module.named_parameters``: every parameter once, under the path to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch02_parameter_registration._trees import KINDS, build, closed, opened


def cases(seed: int, device: str) -> list[Case]:
    """Four trees, each with one thing that a walk can trip over."""
    draw = Draw(seed)
    return [
        Case(
            f"{kind}, {device}",
            seed + number,
            device,
            kind=kind,
            width=draw.integer(2, 5),
            prefix=("net", "model.body", "student")[draw.integer(0, 2)],
        )
        for number, kind in enumerate(KINDS[:4])
    ]


def observe(make: Any, case: Case) -> Iterator[tuple]:
    """Walk a tree four times, with and without a prefix and duplicates, and once more after it has grown."""
    root = closed(build(case.kind, case.width, case.seed, case.device))
    with opened():
        known = [parameter for _, parameter in root.named_parameters()]
    pairs = _pairs(make(root))
    yield "names", [name for name, _ in pairs]
    yield "which parameters, in which order", [_position(value, known) for _, value in pairs]
    yield "names on a second walk", [name for name, _ in _pairs(make(root))]
    yield "names with a prefix", [name for name, _ in _pairs(make(root, prefix=case.prefix))]
    repeated = _pairs(make(root, remove_duplicate=False))
    yield "names with remove_duplicate=False", [name for name, _ in repeated]
    yield "parameters with remove_duplicate=False", [_position(value, known) for _, value in repeated]
    root.added = nn.Module()
    root.added.weight = nn.Parameter(known[0].detach().clone())
    closed(root.added)
    yield "names after a child was added", [name for name, _ in _pairs(make(root))]


def _pairs(given: Any) -> list[tuple]:
    listed = list(given)
    for entry in listed:
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise TypeError(f"pairs (name, parameter) are asked for, and one entry is a {type(entry).__name__}")
    return listed


def _position(value: Any, known: list[nn.Parameter]) -> str:
    for number, parameter in enumerate(known):
        if parameter is value:
            return f"parameter {number}"
    return "something that is not a parameter of the tree"


def _reference(module: nn.Module, prefix: str = "", remove_duplicate: bool = True) -> list[tuple[str, nn.Parameter]]:
    with opened():
        return list(module.named_parameters(prefix, remove_duplicate=remove_duplicate))


card = Card(
    goal="Write the walk that every optimizer, every summary and every weight decay rule begins with.",
    may_change="the body of `my_named_parameters`; helper functions are welcome, the signature stays",
    specification=(
        "returns or yields pairs (name, parameter), the very parameters of the module and not copies",
        "a module's own parameters come first, in the order of registration, then its children's in theirs, down to "
        "any depth",
        "the name is the path: names of children and parameter, joined by dots, after `prefix` if there is one",
        "a parameter that occurs in several places is listed once, where it is met first; with "
        "`remove_duplicate=False` it is listed in every place",
        "what counts is the object: two parameters with equal values, or over the same memory, are two",
        "slots and children that are `None` are passed over, frozen parameters and those of any kind of module are not",
        "every observation must equal that of `named_parameters()`; neither it nor `parameters()` may do the work",
    ),
    minutes=20,
    difficulty=3,
    importance=5,
    prerequisites=("_parameters and _modules", "recursion", "yield from"),
)

hints = Hints(
    question=(
        "Draw the tree of a model with an encoder that has a layer that has a weight. Standing at the layer, what do "
        "you know by yourself of the name `encoder.layer.weight`, and what has to be told to you from above? And who "
        "has to know which parameters were met already: each module, or the walk as a whole?"
    ),
    template=(
        "def my_named_parameters(module, prefix='', remove_duplicate=True):\n"
        "    seen = ...                            # one for the whole walk\n\n"
        "    def walk(module, path):\n"
        "        for name, parameter in module._parameters.items():\n"
        "            if ...:                       # which two kinds are passed over?\n"
        "                continue\n"
        "            ...\n"
        "            yield ..., parameter\n"
        "        for name, child in module._modules.items():\n"
        "            if child is not None:\n"
        "                ...                       # everything below the child, under a longer path\n\n"
        "    return walk(module, prefix)"
    ),
)

exercise = Exercise(
    name="my_named_parameters",
    chapter="ch02_parameter_registration",
    parts=("my_named_parameters",),
    kind="functions",
    calls=(("my_named_parameters", (Placeholder("module"),), {"prefix": "", "remove_duplicate": True}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "names": 4.0,
        "which parameters, in which order": 2.0,
        "names on a second walk": 0.5,
        "names after a child was added": 0.5,
    },
    compared_with="nn.Module.named_parameters",
)

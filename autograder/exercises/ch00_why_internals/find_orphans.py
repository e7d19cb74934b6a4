"""find_orphans: the dotted paths of what a module holds and torch cannot see."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch00_why_internals._situations import SITUATIONS


def cases(seed: int, device: str) -> list[Case]:
    """One case a situation, each with sizes of its own; the situation's name is the name of its observation."""
    draw = Draw(seed)
    return [
        Case(
            f"{situation}, {device}",
            seed + number,
            device,
            situation=situation,
            width=draw.integer(2, 4),
            count=draw.integer(2, 3),
        )
        for number, situation in enumerate(SITUATIONS)
    ]


def observe(make: Callable[[nn.Module], Any], case: Case) -> Iterator[tuple]:
    """Build one model and ask for its orphans; in the first situation also again, on a copy and after mending."""
    model = SITUATIONS[case.situation](case.width, case.count).to(case.device)
    before = _signature(model)
    yield case.situation, _paths(make(model))
    yield "the module is left as it was", _signature(model) == before
    if case.situation == "layers in a plain list":
        yield "asked a second time", _paths(make(model))
        yield "asked of a deep copy", _paths(make(copy.deepcopy(model)))
        model.hidden = nn.ModuleList(model.hidden)
        yield "after the list became an nn.ModuleList", _paths(make(model))


def _paths(found: Any) -> Any:
    """Return how often each path was reported, so that no order of walking is asked for and a message names what is
    missing and what is too much. What is no collection stays as it is."""
    if isinstance(found, (list, tuple, set, frozenset)):
        return dict(sorted(Counter(map(str, found)).items()))
    return found


def _signature(model: nn.Module) -> list[list[str]]:
    return [
        [path, *sorted(vars(part)), *sorted(name for name, _ in part.named_parameters()), str(part.training)]
        for path, part in model.named_modules()
    ]


def reference_find_orphans(module: nn.Module) -> list[str]:
    """Return the dotted paths of unregistered modules and weights; the reference of this exercise."""
    registered = {id(part) for part in module.modules()}
    for part in module.modules():
        registered.update(id(tensor) for tensor in (*part._parameters.values(), *part._buffers.values()))
    found: list[str] = []

    def look(value: Any, path: str) -> None:
        if id(value) in registered:
            return
        if isinstance(value, nn.Module) or _is_weight(value):
            found.append(path)
        elif isinstance(value, dict):
            for key, item in value.items():
                look(item, f"{path}.{key}")
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                look(item, f"{path}.{number}")

    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            look(value, f"{prefix}.{name}" if prefix else name)
    return found


def _is_weight(value: Any) -> bool:
    return isinstance(value, nn.Parameter) or (
        isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad
    )


card = Card(
    goal="Write the tool that finds this chapter's bug in any model: what does it hold that torch cannot see?",
    may_change="the body of `find_orphans`, and functions of your own beside it; the signature stays",
    specification=(
        "an orphan is a module, an `nn.Parameter` or a leaf tensor that requires a gradient, and is not registered "
        "anywhere in `module` or its registered children",
        "orphans are looked for in what `vars` shows of `module` and of every registered child (not on the class), and "
        "there inside lists, tuples and dicts, nested as deep as they are",
        "the answer is a list of dotted paths, in any order: attribute names, numbers in a list, keys of a dict, such "
        "as `hidden.0`, `heads.price` or `block.scale`",
        "an orphan module stands for everything inside it: what it holds is not listed; one that is held in two places "
        "may be listed under one path or both",
        "no false alarm: an object that is registered may stand in a list as well, and constants, results kept from a "
        "forward pass, numbers, functions and `None` are nobody's orphans",
        "what `parameters()` returns is no proof, because a class may override it; nothing is changed in the module",
    ),
    minutes=35,
    difficulty=3,
    importance=4,
    prerequisites=("vars(module) and named_modules()", "id(object)", "a function that calls itself"),
)

hints = Hints(
    question=(
        "Two questions in turn. Who is registered: how do you collect the `id` of every module and parameter that "
        "torch reaches? And who is held: for one attribute's value, which three kinds of answer are there, found, "
        "look inside, or not our business?"
    ),
    template=(
        "def find_orphans(module):\n"
        "    registered = {id(part) for part in module.modules()}\n"
        "    registered |= {id(p) for _, p in ...}      # not parameters(): somebody may have overridden it\n"
        "    found = []\n\n"
        "    def look(value, path):\n"
        "        if ...:                                # registered after all\n"
        "            return\n"
        "        if ...:                                # a module or a weight\n"
        "            found.append(path)\n"
        "        elif isinstance(value, dict):\n"
        "            ...                                # look at every item, with a longer path\n"
        "        elif isinstance(value, (list, tuple)):\n"
        "            ...\n\n"
        "    for prefix, part in module.named_modules():\n"
        "        for name, value in vars(part).items():\n"
        "            look(value, ...)                   # 'name' in the root, 'prefix.name' below it\n"
        "    return found"
    ),
)

exercise = Exercise(
    name="find_orphans",
    chapter="ch00_why_internals",
    parts=("find_orphans",),
    kind="functions",
    calls=(("find_orphans", (Placeholder("module"),), {}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(reference_find_orphans,),
    weights={
        "layers in a plain list": 2.0,
        "orphans of registered children": 2.0,
        "registered layers in a list as well": 2.0,
        "a model without a fault": 0.5,
        "the module is left as it was": 0.5,
        "asked*": 0.5,
    },
    compared_with="a walk over everything that each module holds",
)

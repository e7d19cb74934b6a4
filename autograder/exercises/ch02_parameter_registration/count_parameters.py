"""count_parameters: how large a model is, without counting a tied weight twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch02_parameter_registration._trees import KINDS, build


def cases(seed: int, device: str) -> list[Case]:
    """Five trees; the last one is built without memory, as a model that is too large for the machine would be."""
    draw = Draw(seed)
    return [
        Case(f"{kind}, {device}", seed + number, device, kind=kind, width=draw.integer(2, 6))
        for number, kind in enumerate(KINDS)
    ]


def observe(make: Any, case: Case) -> Iterator[tuple]:
    """Count, freeze a child and count again, then let the model grow and count once more."""
    root = build(case.kind, case.width, case.seed, case.device)
    counts = make(root)
    yield "what is returned", sorted(counts) if isinstance(counts, dict) else counts
    yield "total", counts["total"]
    yield "trainable", counts["trainable"]
    yield "by_child", counts["by_child"]
    first = next(child for _, child in root.named_children())
    for parameter in first.parameters():
        parameter.requires_grad_(False)
    counts = make(root)
    yield "total after freezing the first child", counts["total"]
    yield "trainable after freezing the first child", counts["trainable"]
    root.grown = nn.Linear(2, 3)
    root.grown_again = root.grown.weight
    yield "total after a layer was added", make(root)["total"]


def _reference(module: nn.Module) -> dict[str, Any]:
    sizes = [(name, p.numel(), p.requires_grad) for name, p in module.named_parameters()]
    return {
        "total": sum(size for _, size, _ in sizes),
        "trainable": sum(size for _, size, trainable in sizes if trainable),
        "by_child": {
            child: sum(size for name, size, _ in sizes if name.startswith(f"{child}."))
            for child, _ in module.named_children()
        },
    }


card = Card(
    goal="Say how many numbers a model holds, in a table whose lines add up.",
    may_change="the body of `count_parameters`; `parameters()` and `named_parameters()`, torch's or yours, may be used",
    specification=(
        "returns a dict with the keys `total`, `trainable` and `by_child`",
        "`total` is the number of values in all parameters, frozen ones included, each parameter once",
        "`trainable` is the same for the parameters that require a gradient",
        "`by_child` maps the name of each direct child to the number of values it brings in: a parameter that occurs "
        "in several places is counted where `named_parameters()` lists it, and nowhere else",
        "a child without parameters has the number 0, a slot that holds `None` is no child; the module's own "
        "parameters are in `total` and `trainable` only; buffers are nowhere",
        "a model on the meta device, which has shapes and no memory, is counted as well",
    ),
    minutes=15,
    difficulty=2,
    importance=4,
    prerequisites=("named_parameters", "named_children", "numel"),
)

hints = Hints(
    question=(
        "An embedding of 7 rows and 4 columns is tied to the output layer. `named_parameters()` lists the shared "
        "weight under one name. Which child does the beginning of that name belong to, and what do the lines of your "
        "table add up to if the other child counts it too?"
    ),
    template=(
        "def count_parameters(module):\n"
        "    total, trainable = 0, 0\n"
        "    by_child = ...                        # every child has a line, even one without parameters\n"
        "    for name, parameter in ...:\n"
        "        size = ...\n"
        "        total += size\n"
        "        ...\n"
        "        if ...:                           # how does the name of an own parameter differ?\n"
        "            by_child[...] += size\n"
        "    return {'total': total, 'trainable': trainable, 'by_child': by_child}"
    ),
)

exercise = Exercise(
    name="count_parameters",
    chapter="ch02_parameter_registration",
    parts=("count_parameters",),
    kind="functions",
    calls=(("count_parameters", (Placeholder("module"),), {}),),
    points=2,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={"what is returned": 0.25, "total": 3.0, "trainable": 1.5, "by_child": 2.0},
    compared_with="a sum over nn.Module.named_parameters",
)

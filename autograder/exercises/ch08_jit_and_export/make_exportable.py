"""make_exportable: a model that decides by its input's values, for any number of rows, as an exported program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch08_jit_and_export._programs import answer, is_decided_inside, quiet_log, warm_up

THRESHOLD = 2.0
MANY_ROWS = 150


class Router(nn.Module):
    """The model of the notebook: it sends a batch to one of two layers, by the size of its values."""

    def __init__(self, features: int, hidden: int, threshold: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.calm = nn.Linear(features, 2)
        self.loud = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 2))
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """Choose a layer and apply it."""
        x = self.dropout(x)
        if x.abs().mean() > self.threshold:
            return self.loud(x)
        return self.calm(x)


def cases(seed: int, device: str) -> list[Case]:
    """One router, shown with several calm rows and then, built anew, with a single loud one."""
    warm_up()
    draw = Draw(seed)
    features, hidden, several = draw.integer(2, 5), draw.integer(3, 6), draw.integer(3, 6)
    # Values near 0.5 and near 8 stay clear of the threshold, whatever the seed.
    calm = draw.normal(MANY_ROWS, features, mean=0.5, spread=0.1)
    loud = draw.normal(MANY_ROWS, features, mean=8.0, spread=0.5)
    values = {"calm": calm, "loud": loud, "features": features, "hidden": hidden}
    examples = {
        f"{several} calm rows of {features} as example, {device}": calm[:several].clone(),
        f"1 loud row of {features} as example, {device}": loud[:1].clone(),
    }
    return [Case(name, seed, device, example=example, **values) for name, example in examples.items()]


class _InPython:
    """Stands for the program that is asked for: the model itself, in eval mode."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.state_dict = model, model.state_dict()


def observe(make: Callable[[nn.Module, Tensor], Any], case: Case) -> Iterator[tuple]:
    """Have a router exported; then run the program on both sides of the if, with few and many rows."""
    model = Router(case.features, case.hidden, THRESHOLD).to(case.device)
    with quiet_log():
        program = make(model, case.example)
    expected = isinstance(program, _InPython)
    yield "what is returned", "ExportedProgram" if expected else type(program).__name__
    yield "mode of the model afterwards", "training" if model.training else "eval"
    if not isinstance(program, (ExportedProgram, _InPython)):
        return
    run = program.model.eval() if expected else program.module()
    yield "names of the program's parameters", sorted(program.state_dict)
    # A program that drops values should drop the same ones, however many random numbers were used to make it.
    torch.manual_seed(case.seed)
    yield "output for the example", answer(run, case.example)
    rows = case.example.shape[0]
    yield "output for calm rows, as many as in the example", answer(run, case.calm[-rows:])
    yield "output for loud rows, as many as in the example", answer(run, case.loud[-rows:])
    yield "output for one row", answer(run, case.calm[:1])
    yield "output for many rows", answer(run, case.loud)
    yield "the program makes the decision itself", expected or is_decided_inside(program)


def _reference(model: nn.Module, example: Tensor) -> _InPython:
    return _InPython(model)


card = Card(
    goal="Turn a model with an `if` into a program that decides for itself and takes any number of rows.",
    may_change="`ExportableRouter` and the body of `make_exportable`; `Router` and the signatures stay",
    specification=(
        "`make_exportable(model, example)` takes a `Router` and a tensor of rows, and returns an `ExportedProgram`",
        "the program answers as the model does in eval mode, on both sides of the `if`",
        "it takes one row, as many as the example has, or many more, whatever the example's number of rows is: it may "
        "be 1",
        "the program holds the decision as an operator, so that only one of the two layers runs",
        "the program's parameters have the names that they have in the model",
        "the model is as it was afterwards, in its old mode",
    ),
    minutes=25,
    difficulty=4,
    importance=4,
    prerequisites=("torch.cond", "dynamic_shapes", "load_state_dict"),
)

hints = Hints(
    question=(
        "Which two functions does the decision choose between, and what do both get? And if the example has a single "
        "row, which size does torch.export believe the batch to have for ever, and what could you show it instead?"
    ),
    template=(
        "class ExportableRouter(Router):\n"
        "    def forward(self, x):\n"
        "        x = self.dropout(x)\n"
        "        return torch.cond(..., ..., ..., (x,))      # a tensor that is true or false, then two functions\n\n"
        "def make_exportable(model, example):\n"
        "    exportable = ExportableRouter(..., ..., model.threshold)\n"
        "    ...                                             # the weights of the model; the mode to export in\n"
        "    rows = ...                                      # an example that has more than one row\n"
        "    return torch.export.export(exportable, (rows,), dynamic_shapes=...)"
    ),
)

exercise = Exercise(
    name="make_exportable",
    chapter="ch08_jit_and_export",
    parts=("make_exportable",),
    kind="functions",
    calls=(("make_exportable", (Placeholder("model"), Placeholder("example")), {}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "what is returned": 0.5,
        "mode of the model afterwards": 0.5,
        "output for the example": 0.5,
        "output for one row": 2.0,
        "output for many rows": 2.0,
        "the program makes the decision itself": 2.0,
    },
    compared_with="the model in Python",
)

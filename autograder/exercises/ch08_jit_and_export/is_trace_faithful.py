"""is_trace_faithful: does a trace made from one example answer like the model for other inputs too?"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch08_jit_and_export._situations import situations


def cases(seed: int, device: str) -> list[Case]:
    """Two sets of models: in one the examples are positive, in the other negative."""
    draw = Draw(seed)
    chosen = []
    for side in (1.0, -1.0):
        rows, features = draw.integer(2, 4), draw.integer(2, 5)
        name = f"{rows} rows of {features}, {'positive' if side > 0 else 'negative'} example, {device}"
        x = draw.normal(rows, features).abs() + 0.5
        chosen.append(Case(name, seed + len(chosen), device, x=x, side=side))
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Ask about one model after the other; then look at what was done to the model that keeps a count."""
    for name, model, example, others in situations(case.x, case.side, case.device):
        before = {key: value.clone() for key, value in model.state_dict().items()}
        with warnings.catch_warnings():
            # A tracer warns about what this exercise is about; a report full of it would hide what matters.
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            answer = make(model, example, others)
        yield name, answer
        if name == "a model that counts its calls":
            yield "mode of the model afterwards", "training" if model.training else "eval"
            yield "buffers of the model afterwards", dict(model.named_buffers())
            yield "parameters are left alone", torch.equal(before["layer.weight"], model.layer.weight)


def _reference(model: nn.Module, example: Tensor, others: list[Tensor]) -> bool:
    eager = copy.deepcopy(model).eval()
    try:
        traced = torch.jit.trace(copy.deepcopy(eager), example, check_trace=False)
        return all(_alike(eager(x), traced(x)) for x in others)
    except RuntimeError:
        return False


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


card = Card(
    goal="Find out whether a trace can be trusted: make it from one example and try it on the inputs that will come.",
    may_change="the body of `is_trace_faithful`; helper functions of your own are welcome",
    specification=(
        "traces `model` with the tensor `example` and compares trace and model on every tensor of the list `others`",
        "returns `True` when all answers agree in shape and, up to rounding, in value, otherwise `False`",
        "`nan` agrees with `nan` in the same place",
        "`False` also when the model cannot be traced, or when the trace raises where the model answers",
        "the model is judged as it will be used, in eval mode; afterwards it is as it was: mode, parameters, buffers",
        "what counts is the answers: a warning alone decides nothing",
    ),
    minutes=20,
    difficulty=2,
    importance=3,
    prerequisites=("torch.jit.trace", "train() and eval()", "copy.deepcopy of a module"),
)

hints = Hints(
    question=(
        "A traced module runs your model several times and shares its buffers. How do you get a model to experiment "
        "on without touching the one you were given? And which comparison in torch would call a tensor of shape (1, 3) "
        "equal to one of shape (3,)?"
    ),
    template=(
        "def is_trace_faithful(model, example, others):\n"
        "    mine = ...                       # a model of your own, in the mode that counts\n"
        "    try:\n"
        "        traced = ...                 # what if this raises?\n"
        "        for x in others:\n"
        "            ...                      # first the shapes, then the values: leave early on a difference\n"
        "    except ...:\n"
        "        return ...\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="is_trace_faithful",
    chapter="ch08_jit_and_export",
    parts=("is_trace_faithful",),
    kind="functions",
    calls=(("is_trace_faithful", (Placeholder("model"), Placeholder("example"), Placeholder("others")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "parameters are left alone": 0.25,
        "a model without a branch": 0.5,
        "a model that counts its calls": 0.5,
        "an if on the values": 2.0,
        "an if that all inputs answer alike": 2.0,
        "dropout": 2.0,
    },
    compared_with="what the models and their traces answer",
)

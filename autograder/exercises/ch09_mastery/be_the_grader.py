"""be_the_grader: the student's probe is the thing that is probed, by right designs and by a zoo of wrong ones."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case
from autograder.compare import difference, words
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch09_mastery._designs import RIGHT, ZOO
from autograder.snapshot import snapshot

MOST_OBSERVATIONS = 200
ACCEPTED, REJECTED, SPOILT = "no alarm", "an alarm", "an alarm that nobody believes"
Probe = Callable[[Any], Iterator[tuple]]


def cases(seed: int, device: str) -> list[Case]:
    """One case: the designs are always the same, and the probe brings its own inputs. The seed sets its randomness."""
    return [Case(f"the zoo, {device}", seed, device)]


def observe(make: Probe, case: Case) -> Iterator[tuple]:
    """Run the student's probe on torch's layer, on right designs and on the zoo; an alarm at a right one spoils all."""
    wanted = _observations(make, nn.BatchNorm1d, case)
    yield "your probe yields pairs of a name and a value", bool(wanted) and all(len(one) >= 2 for one in wanted)
    yield "torch's own layer twice gives the same", not _alarm(make, nn.BatchNorm1d, wanted, case)
    trusted = True
    for name, design in RIGHT.items():
        alarm = _alarm(make, design, wanted, case)
        if alarm and trusted:
            # Told beside the verdict: how somebody named an observation must not decide which mistake it is taken for.
            warnings.warn(f"your probe raised a false alarm at {name}: {alarm}", stacklevel=1)
        trusted = trusted and not alarm
        yield f"accepts {name}", ACCEPTED if not alarm else REJECTED
    for place, design in ZOO.items():
        found = SPOILT if not trusted else REJECTED if _alarm(make, design, wanted, case) else ACCEPTED
        yield f"rejects the one that is wrong in {place}", found


def _observations(probe: Probe, design: type[nn.Module], case: Case) -> list[list[Any]]:
    torch.manual_seed(case.seed)

    def build(*args: Any, **settings: Any) -> nn.Module:
        return design(*args, **settings).to(case.device)

    # A probe that builds its inputs without naming a device gets them where the layers are.
    with torch.device(case.device):
        found = []
        for number, one in enumerate(probe(build)):
            if number >= MOST_OBSERVATIONS:
                raise ValueError(f"the probe yields more than {MOST_OBSERVATIONS} observations")
            found.append([snapshot(item) for item in one] if isinstance(one, (tuple, list)) else [])
        return found


def _alarm(probe: Probe, design: type[nn.Module], wanted: list[list[Any]], case: Case) -> str:
    """Return the first difference that the probe sees between a design and torch's layer, or nothing.

    What it cannot run, it rejects.
    """
    try:
        got = _observations(probe, design, case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for one, other in zip(wanted, got, strict=False):
        if one[:1] != other[:1]:
            return f"its name {words(other[:1])} where torch's layer gives {words(one[:1])}"
        value, seen = (entry[1] if len(entry) > 1 else None for entry in (one, other))
        if said := difference(value, seen, *one[2:3]):
            return f"its observation {words(one[0]) if one else 'without a name'}, {said}"
    return "" if len(got) == len(wanted) else f"{len(got)} observations, where torch's layer gives {len(wanted)}"


def reference_probe(make: Any) -> Iterator[tuple]:
    """Drive a BatchNorm through everything that it promises; the reference of this exercise."""
    layer = make(2, eps=0.5, momentum=0.3)
    yield "file", {name: value.dtype for name, value in sorted(layer.state_dict().items())}
    yield "parameters", sorted(name for name, _ in layer.named_parameters())
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([2.0, -1.0]))
        layer.bias.copy_(torch.tensor([0.5, 3.0]))
    x = torch.tensor([[1.0, 5.0], [2.0, -1.0], [3.0, 0.5], [6.0, 0.0]], requires_grad=True)
    y = layer(x)
    y.pow(3).sum().backward()
    yield "output", y
    yield "gradient", x.grad
    yield "remembered", [buffer for _, buffer in sorted(layer.state_dict().items())]
    layer.eval()
    rows = x.detach() + 1
    yield "eval", layer(rows)
    yield "input", rows
    yield "remembered after eval", [buffer for _, buffer in sorted(layer.state_dict().items())]
    yield "training again", layer.train()(rows)
    averaging = make(2, momentum=None)
    for step in (1.0, 4.0):
        averaging(step * x.detach())
    yield "average", averaging.running_mean
    yield "copy in float64", copy.deepcopy(layer).double().eval()(rows.double()), 1e-4


card = Card(
    goal="Write the check for somebody else's BatchNorm: it must let every right design pass and catch the wrong ones.",
    may_change="the body of `probe`, and functions of your own beside it",
    specification=(
        "`probe(make)` is a generator: it builds layers with `make(num_features, eps=…, momentum=…)`, drives them, and "
        "yields what it sees (200 observations at most), `yield name, value`; `yield name, value, tolerance` sets how "
        "far two numbers may differ",
        "it runs once with torch's `nn.BatchNorm1d` and once with each design, and finds the same random numbers every "
        "time; equal observations mean accepted, a difference or an error means rejected; tensors are compared with "
        "the tolerance of their dtype",
        "five right designs must be accepted: an alarm at one of them spoils all other alarms",
        "fifteen wrong layers are to be rejected, each wrong in one place; your points are the share that you catch",
        "inputs are rows of shape (rows, features); the spec is that of `my_batchnorm` in chapter 3",
        "the probe asks what a layer does, not how it is called or written; a right design may have helpers of its "
        "own, a child module or a buffer that is in no file",
    ),
    minutes=45,
    difficulty=4,
    importance=4,
    prerequisites=("my_batchnorm of chapter 3", "generators and yield", "everything that a layer can get wrong"),
)

hints = Hints(
    question=(
        "Take the sequence of a layer's life: built, trained, switched, reloaded, trained again. At each stage, which "
        "tensors could you look at, and with which inputs and settings would a right and a wrong one give the same "
        "numbers by chance?"
    ),
    template=(
        "def probe(make):\n"
        "    layer = make(2, eps=..., momentum=...)     # settings that are nobody's default\n"
        "    yield 'file', ...                          # names, without an order\n"
        "    ...                                        # weight and bias that are not 1 and 0\n"
        "    x = torch.tensor(..., requires_grad=True)  # few rows\n"
        "    y = layer(x)\n"
        "    ...                                        # a backward whose gradient is not zero\n"
        "    yield 'output', y\n"
        "    yield ...                                  # what changed in training\n"
        "    layer.eval()\n"
        "    yield ...                                  # what changed in eval, and what did not\n"
        "    layer.train()\n"
        "    yield ..."
    ),
)

exercise = Exercise(
    name="be_the_grader",
    chapter="ch09_mastery",
    parts=("probe",),
    kind="functions",
    calls=(("probe", (Placeholder("make"),), {}),),
    points=5,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(reference_probe,),
    weights={"your probe yields*": 0.25, "torch's own layer twice*": 0.25, "accepts*": 0.5},
    compared_with="a probe that accepts every right design and catches the whole zoo",
)

"""MultiTask against a reference: one backbone, a head a task in an ``nn.ModuleDict``, and heads that come later."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._containers import answer, fill, gradients
from autograder.observe import attempt

POSSIBLE = ("price", "colour", "weight_class", "rating", "age")


def cases(seed: int, device: str) -> list[Case]:
    """Two tasks in float32 and three in float64, with names and sizes drawn."""
    draw = Draw(seed)
    chosen = []
    for count, dtype in ((2, torch.float32), (3, torch.float64)):
        start = draw.integer(0, len(POSSIBLE) - 1)
        names = [POSSIBLE[(start + number) % len(POSSIBLE)] for number in range(count + 1)]
        sizes = [draw.integer(1, 2) + 2 * number for number in range(count + 1)]
        features, hidden = draw.integer(3, 4), draw.integer(5, 6)
        chosen.append(
            Case(
                f"{count} tasks, {str(dtype).removeprefix('torch.')}, {device}",
                seed + len(chosen),
                device,
                features=features,
                hidden=hidden,
                tasks=dict(zip(names[:count], sizes[:count], strict=True)),
                later=(names[count], sizes[count]),
                dtype=dtype,
                x=draw.normal(draw.integer(2, 4), features, spread=2.0).to(dtype),
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Ask for every task, train one of them, name a task that is not there, and add a head to the trained model."""
    tasks = dict(case.tasks)
    net: Any = make(case.features, case.hidden, case.tasks).to(case.device, case.dtype)
    yield "parameters()", {name: list(parameter.shape) for name, parameter in net.named_parameters()}
    yield "dtypes after .to(dtype)", sorted({str(parameter.dtype) for parameter in net.parameters()})
    fill(net)
    for number, task in enumerate(tasks, start=1):
        yield f"output for task {number}", net(case.x, task)
    first = next(iter(tasks))
    net(case.x, first).pow(2).sum().backward()
    yield "gradients after a loss on task 1", gradients(net)
    yield "heads that ran for task 1", answer(lambda: _heads_that_ran(net, case, first))
    yield "a task that is not there", attempt(lambda: net(case.x, "weather"))
    yield "a task called keys", attempt(lambda: make(case.features, case.hidden, {"keys": 2}))
    yield "output of a deepcopy", answer(lambda: copy.deepcopy(net)(case.x, first))
    reloaded: Any = make(case.features, case.hidden, tasks).to(case.device, case.dtype)
    report = answer(lambda: reloaded.load_state_dict(net.state_dict(), strict=False))
    yield "keys missing on reload", list(getattr(report, "missing_keys", ["it did not load"]))
    yield "output for task 1 after reload", reloaded(case.x, first)
    yield from _a_new_head(net, case, first)


def _heads_that_ran(net: Any, case: Case, task: str) -> list[str]:
    ran: list[str] = []

    def note(name: str) -> Any:
        return lambda module, inputs, output: ran.append(name)

    names: dict[nn.Module, str] = {}
    for name, part in net.heads.items():
        names.setdefault(part, name)
    handles = [part.register_forward_hook(note(name)) for part, name in names.items()]
    net(case.x, task)
    for handle in handles:
        handle.remove()
    return ran


def _a_new_head(net: Any, case: Case, first: str) -> Iterator[tuple]:
    name, size = case.later
    old = dict(net.named_parameters())
    net.eval()
    said = attempt(lambda: net.add_task(name, size))
    yield "add_task", said
    yield "parameters() after add_task", {key: list(parameter.shape) for key, parameter in net.named_parameters()}
    kept = sorted(key for key, parameter in net.named_parameters() if old.get(key) is parameter)
    yield "parameters that are the same objects as before", kept
    yield "dtypes after add_task", sorted({str(parameter.dtype) for parameter in net.parameters()})
    fill(net)
    yield "output for task 1 after add_task", net(case.x, first)
    yield "output for the new task", answer(lambda: net(case.x, name))
    yield "add_task with a name that is taken", attempt(lambda: net.add_task(first, size))
    yield "output for task 1 after the refusal", net(case.x, first)


class ReferenceMultiTask(nn.Module):
    """One backbone, and one linear head for each task, chosen by name."""

    def __init__(self, in_features: int, hidden: int, tasks: Mapping[str, int]) -> None:
        super().__init__()
        self.backbone = nn.Linear(in_features, hidden)
        self.heads = nn.ModuleDict({task: nn.Linear(hidden, size) for task, size in tasks.items()})

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:
        """Return what the head of ``task`` makes of the features. Raises KeyError for a task without a head."""
        return self.heads[task](torch.relu(self.backbone(x)))

    def add_task(self, task: str, size: int) -> None:
        """Add a head of the backbone's device and dtype. Raises KeyError when the name is taken."""
        if task in self.heads:
            raise KeyError(f"there is a head for {task} already")
        like = self.backbone.weight
        self.heads[task] = nn.Linear(like.shape[0], size, device=like.device, dtype=like.dtype)


card = Card(
    goal="Write a model with one backbone and a head for each task, chosen by name, to which heads can be added.",
    may_change="the bodies of the methods; helper methods are welcome, the signatures stay",
    specification=(
        "`MultiTask(in_features, hidden, tasks)` gets the tasks as a dict from name to number of outputs",
        "`backbone` is an `nn.Linear`, followed by a ReLU; `heads` is an `nn.ModuleDict` with one `nn.Linear` a task, "
        "so that the keys of the file are `backbone.weight`, `heads.price.weight` and so on",
        "`net(x, task)` returns the output of that head; no other head runs, and the backbone learns from every task",
        "a task without a head raises `KeyError`, and so does a name that `nn.ModuleDict` refuses, such as `keys`",
        "`net.add_task(name, size)` adds a head on the device and in the dtype of the backbone, and leaves what was "
        "trained before untouched; a name that is taken raises `KeyError`",
        "compared with a reference of ours, with the same weights under the same names",
    ),
    minutes=15,
    difficulty=2,
    importance=4,
    prerequisites=("nn.ModuleDict", "nn.Linear and torch.relu", "dtype and device of a parameter"),
)

hints = Hints(
    question=(
        "How many entries does your model's `_modules` have, and how many its `heads._modules`? A head is added after "
        "the model went to float64: which dtype does a fresh `nn.Linear` have, and whom could you ask for the right "
        "one?"
    ),
    template=(
        "def __init__(self, in_features, hidden, tasks):\n"
        "    super().__init__()\n"
        "    self.backbone = ...\n"
        "    self.heads = nn.ModuleDict({... for ... in tasks.items()})\n\n"
        "def forward(self, x, task):\n"
        "    features = ...\n"
        "    return ...                # which head? Let the dict answer for a name it does not know\n\n"
        "def add_task(self, task, size):\n"
        "    if ...:                   # would it overwrite a trained head?\n"
        "        raise KeyError(task)\n"
        "    self.heads[task] = ...    # a layer like the backbone in device and dtype"
    ),
)

exercise = Exercise(
    name="multi_task",
    chapter="ch06_containers",
    parts=("MultiTask",),
    kind="class",
    calls=(("MultiTask", (Placeholder("in_features"), Placeholder("hidden"), Placeholder("tasks")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(ReferenceMultiTask,),
    weights={
        "parameters()": 3.0,
        "gradients after a loss on task 1": 2.0,
        "a task that is not there": 1.0,
        "a task called keys": 0.25,
        "output of a deepcopy": 0.5,
        "keys missing on reload": 0.5,
        "output for task 1 after the refusal": 0.5,
    },
    compared_with="a backbone with an nn.ModuleDict of heads",
)

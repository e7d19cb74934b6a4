"""export_round_trip: a model leaves as a program in one file, and answers where its class does not exist."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch08_jit_and_export._programs import answer, quiet_log, warm_up
from autograder.observe import attempt

HOME = "training_code"
MANY_ROWS = 40


class Scorer(nn.Module):
    """The model that is shipped: it drops, scores, counts its calls and remembers the last mean."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(features, 2)
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("last_mean", torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        """Score rows, and keep the books."""
        self.calls += 1
        self.last_mean = x.detach().mean(0)
        return self.head(self.dropout(x))


@contextlib.contextmanager
def _importable() -> Iterator[None]:
    """Let the class of the model be importable meanwhile, and from nowhere else: afterwards its code is gone."""
    home = ModuleType(HOME)
    home.Scorer = Scorer
    before = Scorer.__module__
    sys.modules[HOME], Scorer.__module__ = home, HOME
    try:
        yield
    finally:
        sys.modules.pop(HOME, None)
        Scorer.__module__ = before


def cases(seed: int, device: str) -> list[Case]:
    """One model that has been called a few times. Each case costs an export and three loads, so that one must do."""
    warm_up()
    draw = Draw(seed)
    features, rows, before = draw.integer(3, 6), draw.integer(3, 6), draw.integer(2, 4)
    x = draw.normal(MANY_ROWS, features, mean=1.0, spread=2.0)
    name = f"{rows} rows of {features} as example, {before} calls before, {device}"
    return [Case(name, seed, device, x=x, rows=rows, features=features, before=before)]


def observe(make: SimpleNamespace, case: Case) -> Iterator[tuple]:
    """Save a model in training mode; then take its class away, spoil the original, load, and run."""
    model, example = Scorer(case.features).to(case.device), case.x[: case.rows].clone()
    for _ in range(case.before):
        model(case.x)
    with tempfile.TemporaryDirectory(prefix="program-") as folder, quiet_log():
        path = str(Path(folder) / "scorer.pt2")
        with _importable():
            make.save_program(model, example, path)
        yield "a file is written", Path(path).is_file()
        yield "mode of the model afterwards", "training" if model.training else "eval"
        yield "buffers of the model afterwards", dict(model.named_buffers())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        yield "the file opens with torch.export.load", attempt(lambda: torch.export.load(path))
        program = make.load_program(path)
        yield "calls counted in the file", _buffers(program).get("calls")
        yield "output for the example", answer(program, example)
        yield "output for one row", answer(program, case.x[:1])
        yield "output for many rows", answer(program, case.x)
        yield "buffers of the loaded program after these calls", _buffers(program)
        yield "calls counted when the file is loaded again", _buffers(make.load_program(path)).get("calls")


def _buffers(program: Any) -> dict[str, Tensor]:
    """Return the two buffers that a forward changes, as far as the program has them."""
    found = dict(program.named_buffers()) if isinstance(program, nn.Module) else {}
    return {name: value for name, value in found.items() if name in ("calls", "last_mean")}


def _reference_save(model: nn.Module, example: Tensor, path: str) -> None:
    mode = model.training
    try:
        program = torch.export.export(model.eval(), (example,), dynamic_shapes={"x": {0: Dim.AUTO}})
        torch.export.save(program, path)
    finally:
        model.train(mode)


def _reference_load(path: str) -> nn.Module:
    return torch.export.load(path).module()


card = Card(
    goal="Write a model into one file from which it can answer where its Python class does not exist.",
    may_change="the bodies of `save_program` and `load_program`; the signatures stay",
    specification=(
        "`save_program(model, example, path)` writes an exported program: `torch.export.load(path)` opens it",
        "`load_program(path)` returns something to call with a tensor of rows: the program's module",
        "it answers as the model in eval mode does, for one row, for the example's number and for many; the example "
        "has several rows",
        "buffers travel with it and are kept up to date by every call, as in the model; each load starts from the file",
        "the model is as it was afterwards, in its old mode and with its buffers untouched",
        "`load_program` has nothing but the file: not the class, and nothing that `save_program` left in memory",
    ),
    minutes=20,
    difficulty=2,
    importance=5,
    prerequisites=("torch.export.export", "torch.export.save and load", "dynamic_shapes"),
)

hints = Hints(
    question=(
        "Which decisions are fixed once the program is made: branches, sizes, and what else? And if you try the "
        "program before you save it, whose counter moves?"
    ),
    template=(
        "def save_program(model, example, path):\n"
        "    mode = ...                       # what you will have to put back\n"
        "    ...\n"
        "    program = torch.export.export(..., ..., dynamic_shapes=...)\n"
        "    ...                              # write it, put back what you changed\n\n"
        "def load_program(path):\n"
        "    return ...                       # open the file: what of it can be called?"
    ),
)

exercise = Exercise(
    name="export_round_trip",
    chapter="ch08_jit_and_export",
    parts=("save_program", "load_program"),
    kind="functions",
    calls=(
        ("save_program", tuple(Placeholder(name) for name in ("model", "example", "path")), {}),
        ("load_program", (Placeholder("path"),), {}),
    ),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference_save, _reference_load),
    weights={
        "a file is written": 0.25,
        "mode of the model afterwards": 0.5,
        "buffers of the model afterwards": 0.5,
        "output for one row": 0.5,
        "output for the example": 2.0,
        "output for many rows": 2.0,
        "the file opens*": 2.0,
        "calls counted when the file is loaded again": 0.5,
    },
    compared_with="torch's own round trip",
)

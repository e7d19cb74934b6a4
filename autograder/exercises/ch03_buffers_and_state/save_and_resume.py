"""save_checkpoint and load_checkpoint: a run that is stopped and resumed must equal one that never stopped."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt

STEPS_BEFORE, STEPS_AFTER = 3, 3
ROWS = 12


def cases(seed: int, device: str) -> list[Case]:
    """Two runs: AdamW with a step schedule, and SGD with momentum and a cosine schedule."""
    draw = Draw(seed)
    chosen = []
    for optimizer in ("AdamW", "SGD"):
        features = draw.integer(3, 5)
        x = draw.normal(ROWS, features, mean=1.0, spread=2.0)
        chosen.append(
            Case(
                f"{optimizer}, {features} features, {device}",
                seed + 17 * len(chosen),
                device,
                optimizer=optimizer,
                features=features,
                epoch=draw.integer(2, 9),
                x=x,
                target=x.sum(1, keepdim=True),
            )
        )
    return chosen


def observe(make: SimpleNamespace, case: Case) -> Iterator[tuple]:
    """Train, save, go on training; then load into fresh objects and train the same steps again."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
        path = str(Path(folder) / "run.pt")
        first = _run(case, case.seed)
        _train(first, case, STEPS_BEFORE)
        before = {name: value.clone() for name, value in first.model.state_dict().items()}
        make.save_checkpoint(path, first.model, first.optimizer, first.scheduler, case.epoch)
        yield "a file is written", Path(path).is_file()
        yield "the file opens with torch.load's defaults", attempt(lambda: torch.load(path, map_location="cpu"))
        yield "saving leaves the model as it was", _same_state(before, first.model.state_dict())
        yield "losses of the run that goes on", _train(first, case, STEPS_AFTER), _exact(case)
        second = _run(case, case.seed + 1)
        _train(second, case, 1)
        start = make.load_checkpoint(path, second.model, second.optimizer, second.scheduler)
    yield "the epoch to go on with", start
    yield "parameters after loading", {name: p for name, p in second.model.named_parameters()}, 0.0
    yield "buffers after loading", {name: b for name, b in second.model.named_buffers()}, 0.0
    yield "optimizer state after loading", _optimizer_state(second.optimizer), 0.0
    yield "learning rate after loading", [group["lr"] for group in second.optimizer.param_groups]
    yield "steps that the scheduler has counted", second.scheduler.last_epoch
    yield "mode of the model after loading", "training" if second.model.training else "eval"
    yield "losses of the resumed run", _train(second, case, STEPS_AFTER), _exact(case)
    yield "next random numbers of torch", torch.rand(3), 0.0
    yield "next random numbers of Python", [random.random() for _ in range(3)], 0.0
    yield "learning rate at the end", [group["lr"] for group in second.optimizer.param_groups]


def _exact(case: Case) -> float:
    # On a GPU the order of additions is not fixed, so that equality bit for bit is asked for on the CPU only.
    return 0.0 if case.device == "cpu" else 1e-3


def _run(case: Case, seed: int) -> SimpleNamespace:
    torch.manual_seed(seed)
    random.seed(seed)
    model = nn.Sequential(nn.Linear(case.features, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.4), nn.Linear(6, 1))
    model.to(case.device)
    if case.optimizer == "AdamW":
        optimizer: Any = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
        scheduler: Any = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    return SimpleNamespace(model=model, optimizer=optimizer, scheduler=scheduler)


def _train(run: SimpleNamespace, case: Case, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        # Python's random chooses the rows and torch's the dropout, so that both streams matter.
        rows = random.sample(range(ROWS), 6)
        loss = (run.model(case.x[rows]) - case.target[rows]).pow(2).mean()
        run.optimizer.zero_grad()
        loss.backward()
        run.optimizer.step()
        run.scheduler.step()
        losses.append(loss.item())
    return losses


def _same_state(one: dict, other: dict) -> bool:
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def _optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    state = optimizer.state_dict()["state"]
    return {f"parameter {index} {key}": value for index, entry in state.items() for key, value in sorted(entry.items())}


def _reference_save(path: str, model: Any, optimizer: Any, scheduler: Any, epoch: int) -> None:
    state = {
        "objects": [thing.state_dict() for thing in (model, optimizer, scheduler)],
        "epoch": epoch,
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        "python": random.getstate(),
    }
    torch.save(state, path)


def _reference_load(path: str, model: Any, optimizer: Any, scheduler: Any) -> int:
    state = torch.load(path, map_location="cpu")
    for thing, saved in zip((model, optimizer, scheduler), state["objects"], strict=True):
        thing.load_state_dict(saved)
    torch.set_rng_state(state["torch"])
    torch.cuda.set_rng_state_all(state["cuda"])
    random.setstate(state["python"])
    return state["epoch"] + 1


card = Card(
    goal="Stop a training run, start it again from a file, and get the very numbers that it would have had.",
    may_change="the bodies of `save_checkpoint` and `load_checkpoint`; the signatures stay",
    specification=(
        "`save_checkpoint` writes one file and leaves everything else as it was",
        "`load_checkpoint` brings model, optimizer and scheduler back to the moment of saving and returns the next "
        "epoch, `epoch + 1`",
        "the random numbers go on as well: torch's (on every device) and those of Python's `random`",
        "the model keeps the mode it has: training goes on at once",
        "the file opens with `torch.load(path)`, without switching its safety off",
        "on the CPU the losses after resuming equal those of a run that never stopped, bit for bit",
    ),
    minutes=25,
    difficulty=3,
    importance=5,
    prerequisites=("state_dict and load_state_dict", "torch.save and torch.load", "random number generators"),
)

hints = Hints(
    question=(
        "List everything that the next training step reads: which objects, and which hidden streams of numbers? "
        "For each, find the call that hands its state out as plain data, and the call that takes it back."
    ),
    template=(
        "def save_checkpoint(path, model, optimizer, scheduler, epoch):\n"
        "    torch.save({'model': ..., 'optimizer': ..., 'scheduler': ..., 'epoch': ...,\n"
        "                'torch_random': ..., 'python_random': ...}, path)\n\n"
        "def load_checkpoint(path, model, optimizer, scheduler):\n"
        "    state = torch.load(path, ...)\n"
        "    ...                      # hand every part back, the random states last\n"
        "    return ..."
    ),
)

_OBJECTS = tuple(Placeholder(name) for name in ("path", "model", "optimizer", "scheduler"))

exercise = Exercise(
    name="save_and_resume",
    chapter="ch03_buffers_and_state",
    parts=("save_checkpoint", "load_checkpoint"),
    kind="functions",
    calls=(
        ("save_checkpoint", (*_OBJECTS, Placeholder("epoch")), {}),
        ("load_checkpoint", _OBJECTS, {}),
    ),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference_save, _reference_load),
    weights={
        "a file is written": 0.25,
        "saving leaves the model as it was": 0.25,
        "losses of the run that goes on": 0.25,
        "mode of the model after loading": 0.5,
        "losses of the resumed run": 3.0,
        "the file opens*": 2.0,
        "buffers after loading": 2.0,
    },
    compared_with="a run that never stopped",
)

"""freeze_and_finetune: parts that stand still in every respect, and an optimizer that remembers the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints


class _Network(nn.Module):
    """Three parts of equal shapes, two of whose names begin alike, so that a shift by one part goes unnoticed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        self.block2 = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block2(self.block(x)))


def cases(seed: int, device: str) -> list[Case]:
    """Adam with a whole part frozen, and SGD with one layer of a part frozen."""
    draw = Draw(seed)
    chosen = []
    for optimizer, frozen, rates in (
        ("Adam", ["block"], {"block2": 0.001, "head": 0.02}),
        ("SGD", ["block.0", "block2"], {"head": 0.01}),
    ):
        width = draw.integer(3, 5)
        chosen.append(
            Case(
                f"{optimizer}, frozen: {', '.join(frozen)}, {device}",
                seed + len(chosen),
                device,
                optimizer=optimizer,
                frozen=frozen,
                rates=rates,
                width=width,
                decay=draw.number(0.02, 0.1),
                memory=draw.number(0.5, 0.8),
                x=draw.normal(8, width, mean=1.0, spread=2.0),
                target=draw.normal(8, width),
            )
        )
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Train, leave gradients behind, freeze; then look at everything that could still move, and train on."""
    model = _Network(case.width).to(case.device)
    old = _optimizer(case, model)
    for _ in range(2):
        _step(model, old, case)
    # A last backward without a step: these gradients are what freezing has to think of.
    _loss(model, case).backward()
    start = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    memory = {name: _memory(old, parameter) for name, parameter in model.named_parameters()}
    new = make(model, old, list(case.frozen), dict(case.rates))
    yield "which parameters require a gradient", {name: p.requires_grad for name, p in model.named_parameters()}
    yield "old gradients left on frozen parameters", _left(model, case)
    yield "modes", {path: "train" if part.training else "eval" for path, part in model.named_modules() if path}
    yield "learning rate of each trained parameter", _rates(new, model)
    yield "other settings of the groups", _settings(new)
    trained = [name for name, p in model.named_parameters() if not _inside(name, case.frozen)]
    named = dict(model.named_parameters())
    yield "what the optimizer remembers", {name: _memory(new, named[name]) for name in trained}
    yield "it is what the old one remembered", all(_alike(_memory(new, named[name]), memory[name]) for name in trained)
    yield "values are as they were", all(torch.equal(start[name], value) for name, value in model.state_dict().items())
    for _ in range(3):
        _step(model, new, case)
    yield "frozen values that moved", _moved(model, start, case.frozen)
    yield "values after three more steps", {name: value for name, value in model.state_dict().items()}, 1e-4


def _optimizer(case: Case, model: nn.Module) -> Any:
    if case.optimizer == "Adam":
        betas = (case.memory, 0.99)
        return torch.optim.Adam(model.parameters(), lr=0.01, betas=betas, weight_decay=case.decay, foreach=False)
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=case.memory, weight_decay=case.decay, foreach=False)


def _loss(model: nn.Module, case: Case) -> torch.Tensor:
    return (model(case.x) - case.target).pow(2).mean()


def _step(model: nn.Module, optimizer: Any, case: Case) -> None:
    optimizer.zero_grad()
    _loss(model, case).backward()
    optimizer.step()


def _inside(name: str, paths: list[str]) -> bool:
    return any(name == path or name.startswith(f"{path}.") for path in paths)


def _memory(optimizer: Any, parameter: torch.Tensor) -> Any:
    state = optimizer.state.get(parameter, {})
    return {key: state[key].clone() for key in ("exp_avg", "momentum_buffer") if torch.is_tensor(state.get(key))}


def _alike(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def _left(model: nn.Module, case: Case) -> list[str]:
    return [name for name, p in model.named_parameters() if _inside(name, case.frozen) and p.grad is not None]


def _rates(optimizer: Any, model: nn.Module) -> dict[str, float]:
    rates = {id(parameter): group["lr"] for group in optimizer.param_groups for parameter in group["params"]}
    return {name: rates[id(parameter)] for name, parameter in model.named_parameters() if id(parameter) in rates}


def _settings(optimizer: Any) -> list[list[float]]:
    keys = ("weight_decay", "momentum", "betas")
    return [[number for key in keys if key in group for number in _list(group[key])] for group in _one_each(optimizer)]


def _one_each(optimizer: Any) -> list[dict]:
    # How many groups there are is the student's choice: only differing settings are looked at.
    different: list[dict] = []
    for group in optimizer.param_groups:
        if not any(_same_settings(group, one) for one in different):
            different.append(group)
    return different


def _same_settings(one: dict, other: dict) -> bool:
    return all(one.get(key) == other.get(key) for key in ("weight_decay", "momentum", "betas"))


def _list(value: Any) -> list[float]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _moved(model: nn.Module, start: dict, frozen: list[str]) -> list[str]:
    state = model.state_dict()
    return [name for name in state if _inside(name, frozen) and not torch.equal(state[name], start[name])]


def _reference(model: nn.Module, optimizer: Any, frozen: list[str], rates: dict[str, float]) -> Any:
    for path in frozen:
        part = model.get_submodule(path)
        part.eval()
        for parameter in part.parameters():
            parameter.requires_grad_(False)
            parameter.grad = None
    settings = {key: value for key, value in optimizer.param_groups[0].items() if key not in ("params", "lr")}
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            rate = next(
                (rate for path, rate in rates.items() if _inside(name, [path])), optimizer.param_groups[0]["lr"]
            )
            groups.setdefault(rate, []).append(parameter)
    new = type(optimizer)([{"params": params, "lr": rate, **settings} for rate, params in groups.items()])
    for group in new.param_groups:
        for parameter in group["params"]:
            if parameter in optimizer.state:
                new.state[parameter] = optimizer.state[parameter]
    return new


card = Card(
    goal="Freeze parts of a half-trained model so that nothing in them moves, and train the rest on undisturbed.",
    may_change="the body of `freeze_and_finetune`, and functions of your own beside it; the signature stays",
    specification=(
        "`frozen` lists dotted paths of parts: their parameters require no gradient, keep none from earlier, and their "
        "modules go to eval mode, so that no buffer moves either; all other modes stay",
        "a path names that part and what is inside it: `block` is not `block2`",
        "an optimizer of the same class comes back (a new one or the old one, changed) that holds the trained "
        "parameters and no others",
        "`rates` maps paths to learning rates; what lies under none of them keeps the old optimizer's rate",
        "all other settings, such as momentum, betas and weight decay, stay as they were",
        "what the old optimizer remembers of each trained parameter goes on with that very parameter",
        "no value of the model changes during the call",
    ),
    minutes=30,
    difficulty=4,
    importance=5,
    prerequisites=("requires_grad and .grad", "param_groups and state of an optimizer", "train() and eval()"),
)

hints = Hints(
    question=(
        "Three things can move a number of a frozen part: a gradient that is still there, an optimizer that holds "
        "it, a forward in training mode. What stops each? And for the parts that go on: by what is the memory of an "
        "optimizer keyed while it lives, and by what in its `state_dict()`?"
    ),
    template=(
        "def freeze_and_finetune(model, optimizer, frozen, rates):\n"
        "    for path in frozen:\n"
        "        part = ...\n"
        "        ...                                   # three things to do\n"
        "    settings = {...}                          # of the old group, without its params and its rate\n"
        "    groups = []\n"
        "    for ...:                                  # one group a rate\n"
        "        groups.append({'params': ..., 'lr': ..., **settings})\n"
        "    new = type(optimizer)(groups)\n"
        "    for ...:                                  # every parameter that is trained on\n"
        "        new.state[...] = ...\n"
        "    return new"
    ),
)

exercise = Exercise(
    name="freeze_and_finetune",
    chapter="ch09_mastery",
    parts=("freeze_and_finetune",),
    kind="functions",
    calls=(
        ("freeze_and_finetune", tuple(Placeholder(name) for name in ("model", "optimizer", "frozen", "rates")), {}),
    ),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "which parameters require a gradient": 2.0,
        "old gradients left on frozen parameters": 2.0,
        "what the optimizer remembers": 2.0,
        "values after three more steps": 2.0,
        "values are as they were": 0.5,
        "other settings of the groups": 0.5,
        "it is what*": 0.5,
    },
    compared_with="a run that freezes these parts and forgets nothing else",
)

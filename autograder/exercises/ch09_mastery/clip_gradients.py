"""clip_gradients: hooks that keep what the optimizer will see within a limit, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints


def cases(seed: int, device: str) -> list[Case]:
    """Two models: a plain stack, and one with a tied layer and a frozen bias."""
    draw = Draw(seed)
    chosen = []
    for kind in ("a plain stack", "a tied layer and a frozen bias"):
        width = draw.integer(3, 5)
        chosen.append(
            Case(
                f"{kind}, width={width}, {device}",
                seed + len(chosen),
                device,
                kind=kind,
                width=width,
                x=draw.normal(6, width, spread=2.0),
                target=draw.normal(6, width, spread=3.0),
            )
        )
    return chosen


def observe(make: Callable[[nn.Module, float], Any], case: Case) -> Iterator[tuple]:
    """Compare gradients with and without the hooks: once, accumulated, in a training loop, and after removal."""
    model = _model(case)
    free = copy.deepcopy(model)
    x = case.x.clone().requires_grad_(True)
    _loss(free, x, case).backward()
    # Half of all values lie above this limit, so that every seed has something to clip and something to leave alone.
    sizes = torch.cat([p.grad.flatten().abs() for p in free.parameters() if p.grad is not None])
    limit = round(float(sizes.median()), 3)
    untouched = model(case.x).detach()
    handles = make(model, limit)
    yield "handles came back", isinstance(handles, (list, tuple)) and len(handles) > 0
    yield "the output is as before", torch.equal(model(case.x), untouched)
    x.grad = None
    _loss(model, x, case).backward()
    yield "gradients after one backward", _gradients(model)
    yield "gradient of the input", x.grad
    _loss(model, x, case).backward()
    yield "gradients after a second backward on top", _gradients(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        _loss(model, case.x, case).backward()
        optimizer.step()
    yield "parameters after three ordinary steps", {name: p.detach() for name, p in model.named_parameters()}
    second = make(model, limit / 4)
    _backward_afresh(model, case)
    yield "gradients with a second, tighter limit", _gradients(model)
    _remove(second)
    _backward_afresh(model, case)
    yield "gradients once the second is removed", _gradients(model)
    _remove(handles)
    _backward_afresh(model, case)
    yield "gradients once both are removed", _gradients(model)


def _model(case: Case) -> nn.Module:
    width = case.width
    layers = [nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)]
    model = nn.Sequential(*layers).to(case.device)
    if case.kind != "a plain stack":
        layers[2].weight = layers[0].weight
        layers[2].bias.requires_grad_(False)
    return model


def _loss(model: nn.Module, x: torch.Tensor, case: Case) -> torch.Tensor:
    return (model(x) - case.target).pow(2).sum()


def _backward_afresh(model: nn.Module, case: Case) -> None:
    model.zero_grad()
    _loss(model, case.x, case).backward()


def _gradients(model: nn.Module) -> dict[str, Any]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def _remove(handles: Any) -> None:
    for handle in handles:
        handle.remove()


def _reference(model: nn.Module, limit: float) -> list[Any]:
    def clip(parameter: torch.Tensor) -> None:
        parameter.grad.clamp_(-limit, limit)

    return [p.register_post_accumulate_grad_hook(clip) for p in model.parameters() if p.requires_grad]


card = Card(
    goal="Clip the gradients that the optimizer will see, from hooks alone: the training loop stays as it is.",
    may_change="the body of `clip_gradients`; the signature stays",
    specification=(
        "after every `backward()`, each value of each parameter's `.grad` lies between `-limit` and `limit`: smaller "
        "values are untouched, larger ones are set to the limit",
        "this holds for the accumulated gradient as well, when two calls of `backward()` come before one `zero_grad()`",
        "what flows through the network is not clipped: the gradient of the input stays the true one",
        "frozen parameters are left alone, and a tied one is treated like any other",
        "a list of handles comes back; calling `remove()` on each of them undoes this call, and no other",
    ),
    minutes=15,
    difficulty=3,
    importance=4,
    prerequisites=("handles and remove()", "gradients of parameters and of inputs", "clamp_ and its return value"),
)

hints = Hints(
    question=(
        "Follow one weight's gradient on its way: it is computed, it is added to what is already in `.grad`, and the "
        "optimizer reads it. At which of these moments does the specification speak, and which hook of a tensor runs "
        "exactly then?"
    ),
    template=(
        "def clip_gradients(model, limit):\n"
        "    def clip(parameter):\n"
        "        ...                     # in place; and mind what this function returns\n\n"
        "    handles = []\n"
        "    for parameter in model.parameters():\n"
        "        if ...:\n"
        "            handles.append(parameter.register_..._hook(clip))\n"
        "    return handles"
    ),
)

exercise = Exercise(
    name="clip_gradients",
    chapter="ch09_mastery",
    parts=("clip_gradients",),
    kind="functions",
    calls=(("clip_gradients", (Placeholder("model"), 1.0), {}),),
    points=2,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "handles came back": 0.5,
        "the output is as before": 0.5,
        "gradients after one backward": 2.0,
        "gradients after a second backward on top": 2.0,
        "parameters after three ordinary steps": 2.0,
    },
    compared_with="gradients that are clipped after every backward",
)

"""prune_channels: the weakest output channels of a layer fall silent, and stay so while training goes on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints

# Sixteen channels at a fifth tell a rounded count (3) from a quantile (4), nine at 0.3 tell it from rounding down.
LAYERS = {
    "Conv2d": (lambda: nn.Conv2d(3, 16, 3), (2, 3, 5, 5), 0.2),
    "Linear": (lambda: nn.Linear(12, 9), (4, 12), 0.3),
    "Conv1d": (lambda: nn.Conv1d(4, 10, 3), (2, 4, 6), 0.4),
    "a Linear whose channels are equally strong": (lambda: nn.Linear(12, 10), (4, 12), 0.2),
}


def cases(seed: int, device: str) -> list[Case]:
    """Three kinds of layer with distinct channels, and one whose channels cannot be ranked."""
    draw = Draw(seed)
    chosen = []
    for number, (name, (_, shape, amount)) in enumerate(LAYERS.items()):
        chosen.append(
            Case(f"{name}, {device}", seed + number, device, layer=name, amount=amount, x=draw.normal(*shape))
        )
    return chosen


def observe(make: Callable[[nn.Module, float], Any], case: Case) -> Iterator[tuple]:
    """Prune a half-trained layer, train on, copy it, and prune it again."""
    layer: Any = LAYERS[case.layer][0]().to(case.device)
    ranked = "equally" not in case.layer
    _set_strengths(layer, ranked)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.02, momentum=0.9, weight_decay=0.1)
    if ranked:
        _train(layer, optimizer, case, 2)
    bias = layer.bias.detach().clone()
    untouched = layer(case.x).detach()
    with torch.no_grad():
        named = make(copy.deepcopy(layer), case.amount)
    yield "asked while gradients are switched off, it names as many", len(named)
    make(layer, 0.0)
    yield "output after pruning a share of 0", layer(case.x), 1e-5
    pruned = make(layer, case.amount)
    yield "how many channels are named", len(pruned) if isinstance(pruned, (list, tuple)) else pruned
    yield "how many channels are silent", len(_silent(layer, case))
    yield "the bias is as it was", torch.equal(layer.bias.detach(), bias)
    if not ranked:
        yield "the channels named are the silent ones", [int(one) for one in pruned] == _silent(layer, case)
        return
    yield "channels named", pruned
    yield "silent channels", _silent(layer, case)
    yield "output", layer(case.x), 1e-5
    yield "output in eval mode", layer.eval()(case.x), 1e-5
    _train(layer.train(), optimizer, case, 3)
    yield "silent channels after three more steps", _silent(layer, case)
    yield "output after three more steps", layer(case.x), 1e-4
    yield "the other channels have learned", bool(((layer(case.x) - untouched).abs().amax() > 1e-3).item())
    yield from _copied(layer, case)
    yield "channels named when pruned a second time", make(layer, case.amount)
    yield "silent channels then", _silent(layer, case)


def _copied(layer: Any, case: Case) -> Iterator[tuple]:
    duplicate = copy.deepcopy(layer)
    optimizer = torch.optim.SGD(duplicate.parameters(), lr=0.1)
    before = layer(case.x).detach()
    _train(duplicate, optimizer, case, 2)
    yield "silent channels of a deep copy, trained on", _silent(duplicate, case)
    yield "the original meanwhile", torch.equal(layer(case.x), before)


def _set_strengths(layer: Any, ranked: bool) -> None:
    with torch.no_grad():
        weight = layer.weight.flatten(1)
        channels, inputs = weight.shape
        if not ranked:
            weight.copy_(weight.sign())
            return
        # Strengths well apart, in an order from the seed, so that no rounding decides who is the weakest.
        order = torch.randperm(channels).to(weight)
        weight.copy_(weight / weight.norm(dim=1, keepdim=True) * (1 + 0.4 * order)[:, None])
        # The third strongest has all its strength in one number: strong by its length, weak by the sum of its sizes.
        single = int((order == channels - 3).nonzero())
        strength = weight[single].norm()
        weight[single] = 0
        weight[single, inputs // 2] = strength


def _train(layer: Any, optimizer: torch.optim.Optimizer, case: Case, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        (layer(case.x) - 1).pow(2).mean().backward()
        optimizer.step()


def _silent(layer: Any, case: Case) -> list[int]:
    """Return the channels whose output does not depend on the input, seen from outside."""
    with torch.no_grad():
        difference = (layer(case.x) - layer(torch.zeros_like(case.x))).abs()
    per_channel = difference.transpose(0, 1).flatten(1).amax(1)
    return [number for number, size in enumerate(per_channel.tolist()) if size < 1e-6]


def _reference(layer: Any, amount: float) -> list[int]:
    with torch.no_grad():
        strengths = layer.weight.flatten(1).norm(dim=1)
    pruned = strengths.argsort(stable=True)[: round(amount * len(strengths))].tolist()

    def silence(module: Any, args: tuple) -> None:
        with torch.no_grad():
            module.weight[pruned] = 0

    layer.register_forward_pre_hook(silence)
    silence(layer, ())
    return sorted(pruned)


card = Card(
    goal="Silence the weakest output channels of a layer, and keep them silent while training goes on.",
    may_change="the body of `prune_channels`; the signature stays",
    specification=(
        "`layer` is an `nn.Linear`, `nn.Conv1d` or `nn.Conv2d`; a channel is one entry of axis 0 of its weight",
        "the `round(amount · channels)` channels whose weights have the smallest L2 norm are pruned: exactly so many, "
        "also when norms are equal",
        "a pruned channel's output no longer depends on the input: what is left is its bias, which is not touched",
        "it stays so in every later forward, whatever an optimizer that was made before does between them; the other "
        "channels go on learning with that same optimizer",
        "the rule belongs to the layer: a deep copy obeys it too, and trains without touching the original",
        "the sorted list of the pruned channels comes back; `torch.nn.utils.prune` may not do the work",
    ),
    minutes=25,
    difficulty=4,
    importance=3,
    prerequisites=("forward pre-hooks", "in-place updates under torch.no_grad()", "what an optimizer holds"),
)

hints = Hints(
    question=(
        "Set one channel of a small layer to zero and take two steps with SGD and momentum. Is it still zero? Name the "
        "two forces that move it, and the last moment before a forward at which a hook could undo what they did."
    ),
    template=(
        "def prune_channels(layer, amount):\n"
        "    strengths = ...                           # one number a channel, for weights of 2, 3 or 4 axes\n"
        "    pruned = ...                              # so many of the weakest, not a threshold\n\n"
        "    def silence(module, args):\n"
        "        with torch.no_grad():\n"
        "            ...                               # of the module that is called, whichever that is\n\n"
        "    layer....(silence)\n"
        "    return sorted(...)"
    ),
)

exercise = Exercise(
    name="prune_channels",
    chapter="ch09_mastery",
    parts=("prune_channels",),
    kind="functions",
    calls=(("prune_channels", (Placeholder("layer"), 0.2), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "output after pruning a share of 0": 0.5,
        "asked while gradients are switched off*": 0.25,
        "the bias is as it was": 0.5,
        "output in eval mode": 0.5,
        "silent channels": 2.0,
        "silent channels after three more steps": 2.0,
        "output after three more steps": 2.0,
        "silent channels then": 0.25,
        "channels named when pruned a second time": 0.25,
    },
    forbidden_code=("torch.nn.utils.prune",),
    compared_with="a layer whose weakest channels stay silent",
)

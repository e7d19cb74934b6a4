"""MyDropout against ``nn.Dropout``: what is dropped is random, what must hold of it is not."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt

ROWS, COLUMNS = 120, 80


def cases(seed: int, device: str) -> list[Case]:
    """Three probabilities on large inputs, the two ends, and the probabilities that must be refused."""
    draw = Draw(seed)
    middle, low = draw.number(0.45, 0.7), draw.number(0.15, 0.35)
    settings = [
        (middle, torch.float32, "large"),
        (low, torch.float64, "large"),
        (0.0, torch.float32, "end"),
        (1.0, torch.float32, "end"),
    ]
    chosen = []
    for p, dtype, kind in settings:
        shape = (ROWS + draw.integer(0, 20), COLUMNS) if kind == "large" else (draw.integer(2, 5), 4)
        x = draw.normal(*shape, mean=3.0, spread=0.5).to(dtype)
        name = f"p={p}, {'×'.join(map(str, shape))} {str(dtype).removeprefix('torch.')}, {device}"
        chosen.append(Case(name, seed + len(chosen), device, p=p, x=x, kind=kind))
    wrong = [-draw.number(0.1, 0.9), 1.0 + draw.number(0.1, 0.9)]
    chosen.append(Case(f"p={wrong[0]} and p={wrong[1]}, {device}", seed, device, kind="refused", wrong=wrong))
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Drive one layer through training calls, a backward pass, evaluation and a second training call."""
    if case.kind == "refused":
        yield "a probability below 0", attempt(lambda: make(p=case.wrong[0]))
        yield "a probability above 1", attempt(lambda: make(p=case.wrong[1]))
        return
    layer = make(p=case.p).to(case.device)
    yield "parameters and buffers", [name for name, _ in (*layer.named_parameters(), *layer.named_buffers())]
    x = case.x.clone().requires_grad_(True)
    before = x.detach().clone()
    y = layer(x)
    yield "shape and dtype of the output", torch.zeros_like(y) if isinstance(y, torch.Tensor) else y
    if case.kind == "end":
        yield "output in training mode", y
    else:
        yield from _statistics(layer, x, y, case.p)
    yield "the input is left as it was", torch.equal(x.detach(), before)
    layer.eval()
    yield "output in eval mode", layer(x)
    layer.train()
    if case.kind == "large":
        again = layer(x)
        yield "two training calls drop the same values", torch.equal(again == 0, y == 0)


def _statistics(layer: nn.Module, x: torch.Tensor, y: torch.Tensor, p: float) -> Iterator[tuple]:
    dropped = y == 0
    count = y.numel()
    # Six standard deviations of a share among `count` independent draws: a right layer fails once in 500 million.
    margin = 6 * (p * (1 - p) / count) ** 0.5
    yield "share of values dropped", float(dropped.double().mean()), margin
    kept = y.detach()[~dropped] / x.detach()[~dropped]
    yield "factor on the values kept, smallest", float(kept.min()) if kept.numel() else None, 1e-4
    yield "factor on the values kept, largest", float(kept.max()) if kept.numel() else None, 1e-4
    yield "rows that are dropped alike", int(count // y.shape[-1] - torch.unique(dropped, dim=0).shape[0])
    yield "columns that are dropped alike", int(y.shape[-1] - torch.unique(dropped, dim=1).shape[1])
    y.sum().backward()
    gradient = torch.zeros_like(x) if x.grad is None else x.grad
    yield "largest gradient where a value was dropped", float(gradient[dropped].abs().max()), 1e-4
    kept_gradient = gradient[~dropped]
    yield "gradient where a value was kept", float(kept_gradient.mean()) if kept_gradient.numel() else None, 1e-4


card = Card(
    goal="Write the layer that behaves differently in train() and eval() and yet stores nothing.",
    may_change="the bodies of `__init__` and `forward`; the signatures stay",
    specification=(
        "`p` is the probability that a value is set to zero, drawn for every value of every call anew",
        "in training mode the values that stay are scaled so that the expected output equals the input",
        "in eval mode the output equals the input",
        "`p=0` and `p=1` work: everything is kept, everything is zero, nothing is nan",
        "`p` outside the interval from 0 to 1 raises `ValueError` when the layer is built",
        "the input tensor is never changed, and the layer has no parameters and no buffers",
        "what must hold of the random values is compared with `nn.Dropout`; neither it nor `F.dropout` may do the work",
    ),
    minutes=20,
    difficulty=2,
    importance=4,
    prerequisites=("self.training", "torch.rand or bernoulli_"),
)

hints = Hints(
    question=(
        "With p=0.75, about a quarter of 1000 ones stays. If their sum should still be about 1000, what must each of "
        "them become? And what does that rule do when nothing stays at all?"
    ),
    template=(
        "def forward(self, x):\n"
        "    if ...:                  # when is there nothing to do?\n"
        "        return x\n"
        "    if ...:                  # the one probability for which the rule divides by zero\n"
        "        return ...\n"
        "    keep = ...               # one random decision a value: True with which probability?\n"
        "    return ...               # a new tensor: kept values scaled, the others zero"
    ),
)

exercise = Exercise(
    name="my_dropout",
    chapter="ch03_buffers_and_state",
    parts=("MyDropout",),
    kind="class",
    calls=(("MyDropout", (), {"p": 0.5}), ("MyDropout", (Placeholder("p"),), {})),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Dropout,),
    weights={
        "parameters and buffers": 0.25,
        "shape and dtype of the output": 0.25,
        "the input is left as it was": 1.0,
        "share of values dropped": 2.0,
        "factor on the values kept*": 1.0,
        "output in eval mode": 4.0,
        "a probability*": 0.5,
        "rows that are dropped alike": 0.5,
        "columns that are dropped alike": 0.5,
    },
    forbidden_classes=(nn.Dropout, nn.modules.dropout._DropoutNd),
    forbidden=(
        "torch.nn.functional.dropout",
        "torch.nn.functional.alpha_dropout",
        "torch.nn.functional.dropout1d",
        "torch.nn.functional.feature_alpha_dropout",
        "torch.dropout",
        "torch.dropout_",
        "torch.native_dropout",
        "aten.native_dropout",
    ),
)

"""MyBatchNorm against ``nn.BatchNorm1d``: five tensors, two modes, and a variance that is not the same in both."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt

STEPS = 3


def cases(seed: int, device: str) -> list[Case]:
    """Four situations: (N, C), (N, C, L), the cumulative average, and float64 with another eps."""
    draw = Draw(seed)
    chosen = []
    settings = [
        ("rows and features", 2, 0.1, 1e-5, torch.float32),
        ("with a length axis", 3, draw.number(0.2, 0.45), 1e-5, torch.float32),
        ("momentum=None", 2, None, 1e-5, torch.float32),
        ("float64, eps=0.01", 2, draw.number(0.55, 0.9), 1e-2, torch.float64),
    ]
    for name, dimensions, momentum, eps, dtype in settings:
        features, rows = draw.integer(2, 4), draw.integer(4, 7)
        shape = (rows, features) if dimensions == 2 else (rows, features, draw.integer(3, 5))
        batches = [
            draw.normal(*shape, mean=draw.number(-2, 2), spread=draw.number(0.5, 3)).to(dtype) for _ in range(STEPS + 1)
        ]
        chosen.append(
            Case(
                f"{name}, {'×'.join(map(str, shape))}, {device}",
                seed + len(chosen),
                device,
                features=features,
                momentum=momentum,
                eps=eps,
                dtype=dtype,
                batches=batches,
                weight=draw.normal(features, mean=1.0, spread=0.3).to(dtype),
                bias=draw.normal(features).to(dtype),
                checks_errors=len(chosen) == 0,
            )
        )
    return chosen


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Drive one layer through training steps, evaluation, a copy and a reload."""
    layer = make(case.features, eps=case.eps, momentum=case.momentum).to(case.device, case.dtype)
    yield "parameters()", {name: list(p.shape) for name, p in layer.named_parameters()}
    yield "buffers()", {name: list(b.shape) for name, b in layer.named_buffers()}
    yield "dtypes in state_dict()", {name: value.dtype for name, value in layer.state_dict().items()}
    with torch.no_grad():
        layer.weight.copy_(case.weight)
        layer.bias.copy_(case.bias)
    live = layer.state_dict()
    for step, batch in enumerate(case.batches[:STEPS], start=1):
        yield from _training_step(layer, batch, step)
    yield "a state_dict() taken before the steps follows them", live["running_mean"]
    yield "buffers outside the graph", not any(b.requires_grad for b in layer.buffers())
    yield from _evaluation(layer, case)
    yield from _copies(make, layer, case)
    if case.checks_errors:
        layer.train()
        one_row = case.batches[0][:1]
        yield "training with one value per channel", attempt(lambda: layer(one_row))


def _training_step(layer: nn.Module, batch: torch.Tensor, step: int) -> Iterator[tuple]:
    x = batch.clone().requires_grad_(True)
    before = x.detach().clone()
    y = layer(x)
    yield f"output of training step {step}", y
    y.pow(2).sum().backward() if step > 1 else y.pow(3).sum().backward()
    yield f"running_mean after step {step}", layer.running_mean
    yield f"running_var after step {step}", layer.running_var
    yield f"num_batches_tracked after step {step}", layer.num_batches_tracked
    if step == 1:
        yield "the input is left as it was", torch.equal(x.detach(), before)
        yield "gradient of the input", x.grad
        yield "gradient of weight", layer.weight.grad
        yield "gradient of bias", layer.bias.grad


def _evaluation(layer: nn.Module, case: Case) -> Iterator[tuple]:
    layer.eval()
    batch = case.batches[STEPS]
    yield "output in eval mode", layer(batch)
    yield "eval output of one row", layer(batch[:1])
    yield "running_mean after eval", layer.running_mean
    yield "running_var after eval", layer.running_var
    yield "num_batches_tracked after eval", layer.num_batches_tracked


def _copies(make: type[nn.Module], layer: nn.Module, case: Case) -> Iterator[tuple]:
    batch = case.batches[STEPS]
    reloaded = make(case.features, eps=case.eps, momentum=case.momentum).to(case.device, case.dtype)
    report = reloaded.load_state_dict(layer.state_dict(), strict=False)
    yield "keys missing on reload", list(report.missing_keys)
    yield "eval output after reload", reloaded.eval()(batch)
    duplicate: Any = copy.deepcopy(layer)
    yield "eval output of a deepcopy", duplicate.eval()(batch)
    # Both start from float32 sums, whose order may differ; the tolerance allows for that and for nothing more.
    yield "eval output after .double()", duplicate.double()(batch.double()), 1e-4


card = Card(
    goal="Write BatchNorm1d yourself, so that nothing about its five tensors is left to belief.",
    may_change="the bodies of `__init__` and `forward`; helper methods are welcome, the signatures stay",
    specification=(
        "input of shape (N, C) or (N, C, L); every channel is normalised over all its other axes",
        "parameters `weight` (ones) and `bias` (zeros); buffers `running_mean` (zeros), `running_var` (ones) and "
        "`num_batches_tracked` (an int64 scalar, 0)",
        "training mode normalises with the statistics of the batch, as `nn.BatchNorm1d` does, and updates the "
        "buffers in place, outside the autograd graph",
        "`momentum` is the weight of the newest batch; `momentum=None` keeps the plain average of all batches so far",
        "eval mode normalises with the buffers and changes nothing",
        "training with a single value per channel raises `ValueError`",
        "every observation must equal that of `nn.BatchNorm1d`; neither it nor `F.batch_norm` may do the work",
    ),
    minutes=35,
    difficulty=4,
    importance=5,
    prerequisites=("register_buffer and nn.Parameter", "self.training", "in-place updates under torch.no_grad()"),
)

hints = Hints(
    question=(
        "Take one batch of shape (4, 3) and write down five tensors before and after one call of `nn.BatchNorm1d`. "
        "Which of the five changed, by what rule, and does the variance that divides the batch equal the variance "
        "that enters the running average? Compute both by hand for one column."
    ),
    template=(
        "def forward(self, x):\n"
        "    axes = ...                      # every axis but the channels\n"
        "    if self.training:\n"
        "        mean, var = ...             # of this batch, for normalising\n"
        "        with torch.no_grad():\n"
        "            ...                     # count the batch, choose the factor, move both buffers in place\n"
        "    else:\n"
        "        mean, var = ...\n"
        "    shape = ...                     # so that (C,) broadcasts over (N, C) and (N, C, L)\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="my_batchnorm",
    chapter="ch03_buffers_and_state",
    parts=("MyBatchNorm",),
    kind="class",
    calls=(("MyBatchNorm", (Placeholder("num_features"),), {"eps": 1e-5, "momentum": 0.1}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.BatchNorm1d,),
    weights={
        "parameters()": 2.0,
        "buffers()": 2.0,
        "output in eval mode": 3.0,
        "the input is left as it was": 0.25,
        "keys missing on reload": 0.5,
        "buffers outside the graph": 0.5,
    },
    forbidden_classes=(nn.BatchNorm1d, nn.modules.batchnorm._NormBase),
    forbidden=(
        "torch.nn.functional.batch_norm",
        "torch.batch_norm",
        "torch.native_batch_norm",
        "aten.native_batch_norm",
        "aten._native_batch_norm_legit",
        "aten._native_batch_norm_legit_functional",
        "aten.cudnn_batch_norm",
        "aten._batch_norm_impl_index",
        "torch.nn.functional.instance_norm",
        "aten.native_group_norm",
        "aten.native_layer_norm",
    ),
)

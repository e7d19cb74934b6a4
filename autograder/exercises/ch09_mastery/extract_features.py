"""extract_features: what one layer returns for many batches, and a model that is afterwards as it was before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt


class _Network(nn.Module):
    """A body with an in-place activation, a recurrent layer that returns a tuple, and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        body = [nn.Linear(width, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 6), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*body)
        self.memory = nn.GRU(6, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        remembered, _ = self.memory(self.body(x).unsqueeze(1))
        return self.head(remembered.squeeze(1))


def cases(seed: int, device: str) -> list[Case]:
    """The layer before an in-place activation, and the one that returns a tuple; batches of different length."""
    draw = Draw(seed)
    chosen = []
    for path in ("body.3", "memory"):
        width = draw.integer(2, 4)
        rows = [draw.integer(2, 5) for _ in range(3)]
        chosen.append(
            Case(
                f"layer {path}, {sum(rows)} rows in 3 batches, {device}",
                seed + len(chosen),
                device,
                path=path,
                width=width,
                batches=[draw.normal(count, width, mean=1.0, spread=2.0) for count in rows],
                wrong=draw.normal(3, width + 1),
            )
        )
    return chosen


def observe(make: Callable[[nn.Module, str, Any], Any], case: Case) -> Iterator[tuple]:
    """Extract from a half-trained model with mixed modes; then with a batch that does not fit."""
    model = _half_trained(case)
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    gradients = _gradients(model)
    features = make(model, case.path, iter(case.batches))
    yield "features", features
    yield "features ask for a gradient", getattr(features, "requires_grad", None)
    yield "modes afterwards", _modes(model)
    yield "buffers are as they were", all(torch.equal(buffers[name], value) for name, value in model.named_buffers())
    yield "gradients are as they were", _same(gradients, _gradients(model))
    yield "hooks left on the model", _hooks(model)
    yield "a head can be trained on the features", attempt(lambda: _train_head(features))
    yield "features of the same rows again", make(model, case.path, [torch.cat(case.batches)])
    yield "a batch that does not fit", attempt(lambda: make(model, case.path, [case.batches[0], case.wrong]))
    yield "hooks left after the error", _hooks(model)
    yield "modes after the error", _modes(model)
    yield "a path that does not exist", attempt(lambda: make(model, "body.seven", case.batches))
    yield "modes after that", _modes(model)


def _half_trained(case: Case) -> nn.Module:
    model = _Network(case.width).to(case.device)
    model(torch.cat(case.batches)).sum().backward()
    # A frozen BatchNorm in a model that trains: the modes differ from part to part.
    model.body[1].eval()
    return model


def _modes(model: nn.Module) -> dict[str, str]:
    return {path or "the model": "train" if part.training else "eval" for path, part in model.named_modules()}


def _gradients(model: nn.Module) -> list[Any]:
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def _same(before: list[Any], now: list[Any]) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in zip(before, now, strict=True)
    )


def _hooks(model: nn.Module) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def _train_head(features: torch.Tensor) -> None:
    head = nn.Linear(features.shape[-1], 1).to(features.device)
    head(features).pow(2).mean().backward()


def _reference(model: nn.Module, path: str, batches: Any) -> torch.Tensor:
    layer = model.get_submodule(path)
    kept: list[torch.Tensor] = []

    def keep(module: nn.Module, args: tuple, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        kept.append(first.detach().clone())

    modes = {part: part.training for part in model.modules()}
    handle = layer.register_forward_hook(keep)
    try:
        model.eval()
        with torch.no_grad():
            for batch in batches:
                model(batch)
    finally:
        handle.remove()
        for part, training in modes.items():
            part.training = training
    return torch.cat(kept)


card = Card(
    goal="Collect what one layer returns for a whole data set, and leave no trace on the model.",
    may_change="the body of `extract_features`; the signature stays",
    specification=(
        "`path` is a dotted name such as `body.3`; `batches` can be walked over once and yields inputs of the model",
        "the result is one tensor: the layer's outputs for all rows, in order, as in eval mode; when the layer returns "
        "a tuple, its first entry counts",
        "the values are those that the layer returned, even if the next layer writes over them",
        "the features ask for no gradient, and an ordinary head can be trained on them afterwards",
        "afterwards every part of the model is in the mode it had (each has its own), with the buffers "
        "and gradients it had, and without your hook: also when the model raised",
        "an unknown path raises `AttributeError`",
    ),
    minutes=20,
    difficulty=3,
    importance=5,
    prerequisites=("forward hooks and handles", "get_submodule", "try … finally", "detach and clone"),
)

hints = Hints(
    question=(
        "Make a list of everything you change on the model before the first batch runs. For each entry: what was there "
        "before, how many values is that (one, or one a module?), and which line puts it back if a batch raises?"
    ),
    template=(
        "def extract_features(model, path, batches):\n"
        "    kept = []\n\n"
        "    def keep(module, args, output):\n"
        "        ...                                  # first entry of a tuple; a copy of your own\n\n"
        "    modes = ...                              # of every part\n"
        "    handle = model.get_submodule(path)....(keep)\n"
        "    try:\n"
        "        ...\n"
        "    finally:\n"
        "        ...                                  # two things to put back\n"
        "    return torch.cat(kept)"
    ),
)

exercise = Exercise(
    name="extract_features",
    chapter="ch09_mastery",
    parts=("extract_features",),
    kind="functions",
    calls=(("extract_features", tuple(Placeholder(name) for name in ("model", "path", "batches")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "features": 3.0,
        "modes afterwards": 2.0,
        "modes after that": 0.25,
        "features of the same rows again": 0.5,
        "a batch that does not fit": 0.25,
        "a path that does not exist": 0.5,
    },
    compared_with="a walk that leaves no trace",
)

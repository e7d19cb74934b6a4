"""TransformerBlock against ``nn.TransformerEncoderLayer``: the same twelve tensors, the same function of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints

POSITIONS = 3000


class _Reference(nn.TransformerEncoderLayer):
    """torch's layer, with the batch first and the arguments that the exercise has."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, norm_first: bool = False):
        super().__init__(d_model, nhead, dim_feedforward, dropout, batch_first=True, norm_first=norm_first)
        # A hook of its own keeps the layer off its fused short cut, which takes a float mask for a boolean one.
        self.register_forward_hook(_look_on)


def _look_on(*seen: Any) -> None:
    """Do nothing."""


def cases(seed: int, device: str) -> list[Case]:
    """Norm after and before, in float32 and float64, without dropout; then dropout, whose shares are counted."""
    draw = Draw(seed)
    chosen = []
    settings = [
        ("norm after", False, torch.float32),
        ("norm before", True, torch.float32),
        ("norm after, float64", False, torch.float64),
        ("norm before, float64", True, torch.float64),
    ]
    for name, norm_first, dtype in settings:
        heads, per_head, rows = draw.integer(2, 3), draw.integer(2, 4), draw.integer(2, 3)
        length, hidden = rows + draw.integer(1, 3), draw.integer(5, 9)
        width = heads * per_head
        x = draw.normal(rows, length, width).to(dtype)
        # Finite numbers, and a few places closed; the first key stays open, so that no row is closed altogether.
        added = draw.normal(length, length).to(dtype)
        added[:, 1:] = added[:, 1:].masked_fill(
            torch.rand(length, length - 1, generator=draw.generator) < 0.3, -torch.inf
        )
        chosen.append(
            Case(
                f"{name}, {rows}×{length}×{width}, {heads} heads, {device}",
                seed + len(chosen),
                device,
                kind="equal",
                sizes=(width, heads, hidden),
                norm_first=norm_first,
                state=_state(draw, width, heads, hidden, dtype),
                x=x,
                closed=torch.ones(length, length).triu(1).bool(),
                added=added,
                toward=draw.normal(rows, length, width).to(dtype),
            )
        )
    p = draw.number(0.25, 0.45)
    chosen.append(Case(f"dropout={p}, {device}", seed + len(chosen), device, kind="dropout", p=p, norm_first=True))
    return chosen


def _state(draw: Draw, width: int, heads: int, hidden: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    shapes = {name: value.shape for name, value in _Reference(width, heads, hidden).state_dict().items()}
    return {
        name: draw.normal(*shape, mean=float("norm" in name and "weight" in name), spread=0.4).to(dtype)
        for name, shape in shapes.items()
    }


def observe(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Load torch's weights into one block, then evaluate it, mask it, train it and copy it; or count what it drops."""
    if case.kind == "dropout":
        yield from _dropout(make, case)
        return
    block = make(*case.sizes, dropout=0.0, norm_first=case.norm_first)
    yield "parameters()", {name: list(p.shape) for name, p in block.named_parameters()}
    state = {name: value.to(case.device) for name, value in case.state.items()}
    block = block.to(case.device, case.x.dtype)
    report = block.load_state_dict(state, strict=False)
    yield "keys that torch's weights do not fit", [*report.missing_keys, *report.unexpected_keys]
    block.eval()
    x = case.x.clone()
    with torch.no_grad():
        yield "output in eval mode", block(x)
        yield "output with a boolean mask", block(x, case.closed)
        yield "output with a float mask", block(x, case.added)
        yield "output for one row alone", block(x[:1])
    yield "the input is left as it was", torch.equal(x, case.x)
    yield from _training(block, case)
    with torch.no_grad():
        yield "output of a deepcopy", copy.deepcopy(block).eval()(case.x, case.closed)


def _training(block: nn.Module, case: Case) -> Iterator[tuple]:
    block.train()
    x = case.x.clone().requires_grad_(True)
    y = block(x, case.closed)
    yield "output in training mode", y
    (y * case.toward).sum().backward()
    yield "gradient of the input", x.grad
    gradients = {name: parameter.grad for name, parameter in block.named_parameters()}
    yield "gradients of the parameters", gradients


def _dropout(make: type[nn.Module], case: Case) -> Iterator[tuple]:
    """Open one branch at a time and read off its factors.

    With norm_first the branch is the output minus the input. The weights make it exactly 1 wherever nothing is
    dropped: a sequence of length 1 has the attention weight 1, and a single hidden unit holds a 1.
    """
    width = 4
    for branch in ("attention", "feed-forward"):
        block = make(width, 2, 1, dropout=case.p, norm_first=True).to(case.device)
        with torch.no_grad():
            for name, value in block.state_dict().items():
                value.copy_(_opened(name, value, branch))
            x = torch.zeros(POSITIONS, 1, width, device=case.device)
            block.train()
            values = (block(x) - x).double().cpu().flatten()
            kept = values[values != 0]
            stays = (1 - case.p) ** 2
            # Six standard deviations of a share; the values of one head, or of one hidden unit, fall together.
            margin = 6 * (stays * (1 - stays) / POSITIONS) ** 0.5
            yield f"share kept by two dropouts in a row, {branch}", kept.numel() / values.numel(), margin
            # Wrong factors are far off. So much room lets two blocks that attend over the batch agree on theirs.
            yield f"factor on what is kept, {branch}", float(kept.median()) if kept.numel() else None, 5e-3
            yield f"branch in eval mode, {branch}", block.eval()(x)[:2, 0] - x[:2, 0], 1e-3


def _opened(name: str, value: torch.Tensor, branch: str) -> torch.Tensor:
    """Return the weights with which one branch is exactly 1 and the other exactly 0."""
    made = torch.zeros_like(value)
    if branch == "attention" and name == "self_attn.in_proj_bias":
        made[2 * value.numel() // 3 :] = 1.0
    if branch == "attention" and name == "self_attn.out_proj.weight":
        made = torch.eye(value.shape[0], device=value.device)
    if branch == "feed-forward" and name in ("linear1.bias", "linear2.weight"):
        made = torch.ones_like(value)
    return made


card = Card(
    goal="Build the Transformer block from parts, so that torch's own layer cannot be told from it.",
    may_change="the bodies of `__init__` and `forward`; helper methods and modules are welcome, the signatures stay",
    specification=(
        "input and output have shape (n, length, d_model): the batch comes first",
        "the parameters have the names and shapes of `nn.TransformerEncoderLayer`, so that its `state_dict()` loads "
        "without a key left over; `nn.MultiheadAttention`, `nn.Linear`, `nn.LayerNorm` and `nn.Dropout` may be the "
        "parts",
        "two branches, self-attention and feed-forward (linear, ReLU, linear), each added to what came in; "
        "`norm_first=False` normalises each sum, `norm_first=True` what enters each branch",
        "`mask` has shape (length, length) and is None, boolean or float: True closes a place, a float is added to "
        "the scores, with gradients and without",
        "`dropout` is the probability for the attention weights, for the hidden values, and for the end of each "
        "branch; in eval mode nothing is dropped",
        "the input tensor is never changed; outputs, gradients and dropped shares are compared with "
        "`nn.TransformerEncoderLayer`, which must not do the work",
    ),
    minutes=40,
    difficulty=4,
    importance=4,
    prerequisites=("nn.MultiheadAttention's shapes", "residual paths", "state_dict keys are paths"),
)

hints = Hints(
    question=(
        "List the twelve keys of `nn.TransformerEncoderLayer(4, 2, 8).state_dict()`. Which of your attributes, with "
        "which class, gives each group of keys? Then follow one input by hand through both values of `norm_first`: "
        "at which two places does the untouched `x` come back in?"
    ),
    template=(
        "class TransformerBlock(nn.Module):\n"
        "    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, norm_first=False):\n"
        "        super().__init__()\n"
        "        self.self_attn = ...          # does it know about the batch, and about dropout?\n"
        "        self.linear1, self.linear2 = ...\n"
        "        self.norm1, self.norm2 = ...\n"
        "        ...                           # three more places for dropout\n\n"
        "    def attend(self, x, mask):\n"
        "        return ...\n\n"
        "    def feed(self, x):\n"
        "        return ...\n\n"
        "    def forward(self, x, mask=None):\n"
        "        if self.norm_first:\n"
        "            x = x + ...\n"
        "            return ...\n"
        "        x = ...\n"
        "        return ..."
    ),
)

_SIZES = tuple(Placeholder(name) for name in ("d_model", "nhead", "dim_feedforward"))

exercise = Exercise(
    name="transformer_block",
    chapter="ch07_model_inspector",
    parts=("TransformerBlock",),
    kind="class",
    calls=(("TransformerBlock", _SIZES, {"dropout": 0.1, "norm_first": False}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_Reference,),
    weights={
        "parameters()": 1.0,
        "keys that torch's weights do not fit": 1.0,
        "output in eval mode": 2.0,
        "output with a boolean mask": 2.0,
        "gradients of the parameters": 1.5,
        "the input is left as it was": 0.5,
        "output of a deepcopy": 0.5,
        "share kept*": 0.75,
        "factor on*": 0.75,
        "branch in eval mode*": 1.0,
        "output with a float mask": 1.5,
    },
    forbidden_classes=(nn.TransformerEncoderLayer,),
    forbidden=("torch._transformer_encoder_layer_fwd", "aten._transformer_encoder_layer_fwd"),
    compared_with="nn.TransformerEncoderLayer",
)

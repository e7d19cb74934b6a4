"""Parameter vs Plain Tensor: the same values held in four ways, asked the same questions, one at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from simulations.live import Simulation, amount, figure_png, switch
from simulations.player import Page
from simulations.trace import Trace, number

COLUMNS = ("nn.Parameter", "register_buffer", "plain tensor", "plain, requires_grad")
START = 2.0


class Holder(nn.Module):
    """One number held in four ways; the output uses all four alike."""

    def __init__(self, frozen: bool) -> None:
        super().__init__()
        self.parameter = nn.Parameter(torch.full((1,), START), requires_grad=not frozen)
        self.register_buffer("buffer", torch.full((1,), START))
        self.plain = torch.full((1,), START)
        self.asking = torch.full((1,), START, requires_grad=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times each of the four, as a tensor of shape (4, n)."""
        return torch.stack([held.to(x.dtype) * x for held in (self.parameter, self.buffer, self.plain, self.asking)])


NAMES = ("parameter", "buffer", "plain", "asking")


def _held(module: nn.Module) -> list[torch.Tensor]:
    return [getattr(module, name) for name in NAMES]


def _yes(found: list[bool]) -> list[tuple[bool, str]]:
    return [(value, "yes" if value else "no") for value in found]


def record(frozen: bool = False, rate: float = 0.1) -> Trace:
    """Ask a real module the questions; every cell is what torch answered."""
    trace = Trace(
        "parameter_or_tensor",
        "Parameter vs Plain Tensor",
        "All four hold the number 2 and take part in forward. What differs is what torch does with them afterwards.",
        facts=[{"id": "yes", "label": "yes"}, {"id": "asked", "label": "questions asked"}],
        pace=1100,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        questions = _questions(frozen, rate)
    for row in range(len(questions)):
        for column in range(len(COLUMNS)):
            trace.node(f"cell:{row}:{column}", COLUMNS[column], "cell")
    trace.event("start", f"A module holds the number {START:g} in four ways. Which of them will it train, save, move?",
                tag="built", facts={"yes": 0, "asked": 0})  # fmt: skip
    count = 0
    for row, (_, answers, said) in enumerate(questions):
        count += sum(good for good, _ in answers)
        trace.event(
            "ask", said, tag="asked", row=row, facts={"yes": count, "asked": row + 1},
            set={
                f"cell:{row}:{column}": {"told": ["good" if good else "orphan", f"{'✓' if good else '✗'} {text}"]}
                for column, (good, text) in enumerate(answers)
            },
        )  # fmt: skip
    trace.event("end", _summary(questions), tag="in short", tone="registered")
    trace.opens = 4
    trace.views = [{"kind": "grid", "columns": list(COLUMNS), "rows": [question for question, *_ in questions]}]
    return trace


def _questions(frozen: bool, rate: float) -> list[tuple[str, list[tuple[bool, str]], str]]:
    model = Holder(frozen)
    found = {id(tensor) for tensor in model.parameters()}
    asked = [("in parameters()?", _yes([id(t) in found for t in _held(model)]),
              "model.parameters() is what the optimizer is built from.")]  # fmt: skip
    saved = set(model.state_dict())
    asked.append(("in state_dict()?", _yes([name in saved for name in NAMES]),
                  f"model.state_dict() holds {', '.join(sorted(saved))}: what a checkpoint keeps."))  # fmt: skip
    model(torch.tensor([1.0, 3.0])).sum().backward()
    asked.append((".grad after backward()", [_gradient(t) for t in _held(model)],
                  "backward() fills .grad of every leaf that asks for it: registered or not."))  # fmt: skip
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad] or [torch.zeros(1)], lr=rate)
    optimizer.step()
    asked.append((f"value after step(), lr={rate:g}", [_moved(t) for t in _held(model)],
                  "optimizer.step() moves what it was given, and nothing else."))  # fmt: skip
    model.zero_grad()
    asked.append((".grad after model.zero_grad()", [(not there, text) for there, text in map(_gradient, _held(model))],
                  "model.zero_grad() clears the gradients it can find. The others go on adding up."))  # fmt: skip
    converted = copy.deepcopy(model).to(torch.float64)
    asked.append(("dtype after .to(float64)", [_dtype(t) for t in _held(converted)],
                  ".to() walks over parameters and buffers. What it does not find stays where it is."))  # fmt: skip
    other = Holder(frozen)
    with torch.no_grad():
        for tensor in _held(other):
            tensor.fill_(-7.0)
    other.load_state_dict(model.state_dict())
    pairs = zip(_held(other), _held(model), strict=True)
    asked.append(("value after load_state_dict", [_loaded(one, source) for one, source in pairs],
                  "A second model was filled with −7 and loaded from the first one's state_dict."))  # fmt: skip
    return asked


def _gradient(tensor: torch.Tensor) -> tuple[bool, str]:
    return tensor.grad is not None, "None" if tensor.grad is None else number(tensor.grad.item())


def _moved(tensor: torch.Tensor) -> tuple[bool, str]:
    value = tensor.detach().item()
    return value != START, f"{START:g} → {number(value)}"


def _dtype(tensor: torch.Tensor) -> tuple[bool, str]:
    return tensor.dtype is torch.float64, str(tensor.dtype).removeprefix("torch.")


def _loaded(tensor: torch.Tensor, source: torch.Tensor) -> tuple[bool, str]:
    return torch.equal(tensor.detach(), source.detach()), number(tensor.detach().item())


def _summary(questions: list) -> str:
    counts = [sum(answers[column][0] for _, answers, _ in questions) for column in range(len(COLUMNS))]
    told = ", ".join(f"{name}: {count}" for name, count in zip(COLUMNS, counts, strict=True))
    return f"Yes out of {len(questions)}: {told}. A plain tensor computes like the others and is known to nobody."


class ParameterOrTensor(Simulation):
    """The simulation of chapter 2."""

    title = "Parameter vs Plain Tensor"

    def page(self, frozen: bool = False, rate: float = 0.1) -> Page:
        """Ask the questions; ``frozen`` builds the Parameter with requires_grad=False."""
        return Page({"frozen Parameter" if frozen else "Parameter": record(frozen, rate)})

    def controls(self) -> dict[str, Any]:
        """Whether the Parameter is frozen, and the learning rate."""
        return {
            "frozen": switch("requires_grad=False for the Parameter", False),
            "rate": amount("learning rate", 0.1, 1.0, 0.1, 0.1),
        }

    def plot(self, page: Page, frozen: bool = False, rate: float = 0.1) -> tuple[bytes, str]:
        """Draw the four values over ten real steps."""
        model = Holder(frozen)
        leaves = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(leaves, lr=rate) if leaves else None
        values: list[list[float]] = [[] for _ in NAMES]
        for _ in range(11):
            for held, seen in zip(_held(model), values, strict=True):
                seen.append(held.item())
            model.zero_grad()
            model(torch.tensor([1.0, -0.5])).square().mean().backward()
            _step(optimizer)

        def draw(figure: Any) -> None:
            axes = figure.subplots()
            styles: list[Callable | str] = ["o-", "s--", "^:", "x-."]
            for name, seen, style in zip(COLUMNS, values, styles, strict=True):
                axes.plot(seen, style, label=name, alpha=0.8)
            axes.set_xlabel("optimizer steps")
            axes.set_ylabel("value")
            axes.legend(frameon=False, fontsize=8)

        ends = ", ".join(f"{name} {seen[-1]:.3g}" for name, seen in zip(COLUMNS, values, strict=True))
        return figure_png(draw), f"Values after ten steps: {ends}"


def _step(optimizer: Any) -> None:
    if optimizer is not None:
        optimizer.step()

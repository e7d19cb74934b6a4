"""replace_output: change what one module returns, from outside, until the handle is removed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import changed_since, global_hooks_put_back, registered
from autograder.observe import attempt


class Reader(nn.Module):
    """Attention, whose output is a pair, then a block and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)
        self.block = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the head's output; it needs the pair that attention returns."""
        mixed, weights = self.attention(x, x, x)
        return self.head(self.block(mixed)) * weights.sum()


def cases(seed: int, device: str) -> list[Case]:
    """Three situations: a chain of layers, a module that returns a pair, and what copies and files see."""
    draw = Draw(seed)
    chosen = []
    for number, kind in enumerate(("chain", "pair", "copies")):
        width, rows = draw.integer(2, 4), draw.integer(2, 5)
        x = draw.normal(rows, 3, width)
        factor, shift = draw.number(1.5, 3.0), draw.number(0.5, 2.0)
        name = f"{kind}, {'×'.join(map(str, x.shape))}, {device}"
        chosen.append(Case(name, seed + number, device, kind=kind, width=width, x=x, factor=factor, shift=shift))
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Replace one output in a fresh model, look at values, gradients and order, and take the change away again."""
    with global_hooks_put_back():
        yield from {"chain": _chain, "pair": _pair, "copies": _copies}[case.kind](make, case)


def _chain(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Reader(case.width).to(case.device)
    before, given, heard = registered(model), [], []
    model.block[0].register_forward_hook(lambda module, args, output: heard.append(output.detach().clone()))
    others = registered(model)

    def scaled(output: torch.Tensor) -> torch.Tensor:
        given.append(output.detach().clone())
        return output * case.factor

    handle = make(model, "block.0", scaled)
    output = model(case.x)
    yield "what the change was given", given
    yield "output of the model with one change", output
    output.square().sum().backward()
    yield "gradient of the layer that was changed", model.block[0].weight.grad
    yield "gradient of a layer further up", model.attention.in_proj_weight.grad
    model.eval()
    second = make(model, "block.0", lambda output: output + case.shift)
    yield "output with two changes, in the order of asking", model(case.x)
    yield "calls of the first change after two passes", len(given)
    yield "what somebody else's earlier hook saw", heard
    handle.remove()
    yield "output when the first change is removed", model(case.x)
    second.remove()
    yield "output when both are removed", model(case.x)
    yield "modules whose hooks differ afterwards", changed_since(others, model)
    yield "a path that the model does not have", attempt(lambda: make(model, "block.7", scaled))
    yield "the same modules as before", list(before) == list(registered(model))


def _pair(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model, given = Reader(case.width).to(case.device), []

    def scaled(output: Any) -> Any:
        given.append(output)
        return output * case.factor

    handle = make(model, "attention", scaled)
    pair = model.attention(case.x, case.x, case.x)
    yield "what the change was given of a pair", given
    yield "the pair with its first part changed", pair
    yield "type of the pair with its first part changed", type(pair).__name__
    yield "output of the model that reads the pair", model(case.x)
    handle.remove()
    quiet = make(model, "attention", lambda output: None)
    yield "the pair when the change returns None", model.attention(case.x, case.x, case.x)
    quiet.remove()
    seldom = make(model, "head", lambda output: None)
    yield "output when the change returns None", model(case.x)
    seldom.remove()


def _copies(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Reader(case.width).to(case.device)
    keys = list(model.state_dict())
    with make(model, "block", lambda output: output * case.factor):
        yield "output inside a with block", model(case.x)
        yield "keys of state_dict() that differ", sorted(set(keys) ^ set(model.state_dict()))
        twin = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.mul_(0.5)
        yield "output of a deepcopy with other weights", twin(case.x)
        model.head = nn.Linear(case.width, 1).to(case.device)
        yield "output with a new head", model(case.x)
    yield "output after the with block", model(case.x)


def reference_replace_output(model: nn.Module, path: str, change: Callable[[Any], Any]) -> Any:
    """Register the change as a forward hook and return its handle; the reference of this exercise."""

    def hook(module: nn.Module, args: tuple, output: Any) -> Any:
        if not isinstance(output, tuple):
            return change(output)
        first = change(output[0])
        return None if first is None else (first, *output[1:])

    return model.get_submodule(path).register_forward_hook(hook)


card = Card(
    goal="Change what one layer of a model returns, without a line of its source, and take the change back.",
    may_change="the body of `replace_output`, and functions of your own beside it; the signature stays",
    specification=(
        "`handle = replace_output(model, path, change)`: from then on, whatever calls the module at `path` gets "
        "`change(output)` instead of its output",
        "a module that returns a tuple: `change` gets the first part, the other parts stay, and it stays a tuple",
        "a `change` that returns `None` leaves the output as it is",
        "gradients flow through the change, to the module itself and to everything before it",
        "several changes of one module are applied in the order in which they were asked for",
        "`handle.remove()` takes back this change and nothing else, in any order; the handle works in a `with` too",
        "modules, keys of `state_dict()` and other hooks stay as they are; a copy of the model made by `deepcopy` "
        "changes the output of its own weights",
        "a path that the model does not have raises `AttributeError`",
    ),
    minutes=20,
    difficulty=2,
    importance=4,
    prerequisites=("register_forward_hook", "what a hook returns", "get_submodule"),
)

hints = Hints(
    question=(
        "A forward hook is called with three things and may hand one back. Which one decides what the caller gets? "
        "Try it on paper for three outputs: a tensor, a pair of tensors, and a change that answers None."
    ),
    template=(
        "def replace_output(model, path, change):\n"
        "    def hook(module, args, output):\n"
        "        if isinstance(output, tuple):\n"
        "            first = ...\n"
        "            ...                  # two cases: nothing to change, or a tuple of the same length\n"
        "        return ...\n\n"
        "    part = ...                   # from a path to a module\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="replace_output",
    chapter="ch04_hooks",
    parts=("replace_output",),
    kind="functions",
    calls=(("replace_output", (Placeholder("model"), Placeholder("path"), Placeholder("change")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(reference_replace_output,),
    weights={
        "output of the model with one change": 3.0,
        "gradient of*": 1.5,
        "the same modules as before": 0.25,
        "type of the pair with its first part changed": 0.5,
        "output with a new head": 0.25,
        "a path that the model does not have": 0.5,
    },
    compared_with="a change that is a forward hook",
)

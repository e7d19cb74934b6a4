"""locate_nan: the module that made the first value that is not finite, not the ones it was handed to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import changed_since, global_hooks_put_back, registered
from autograder.exercises.ch04_hooks._nan_models import SITUATIONS


def cases(seed: int, device: str) -> list[Case]:
    """One case a situation, with sizes of its own; the situation's name is the name of its observation."""
    draw = Draw(seed)
    chosen = []
    for number, situation in enumerate(SITUATIONS):
        width, rows = draw.integer(2, 4), draw.integer(3, 5)
        x = draw.normal(rows, width)
        chosen.append(Case(f"{situation}, {device}", seed + number, device, situation=situation, width=width, x=x))
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Build one model, ask who is guilty, and look at what the question left in the model."""
    with global_hooks_put_back():
        situation = SITUATIONS[case.situation](case.width, case.x)
        model, x = situation.model.to(case.device), situation.x
        _train_once(model, x)
        before, state, gradients = registered(model), copy.deepcopy(model.state_dict()), _gradients(model)
        yield case.situation, _plain(make(model, x, situation.loss))
        yield "modules whose hooks differ afterwards", changed_since(before, model)
        yield "gradients that the question changed", _differing(gradients, _gradients(model))
        yield "parameters and buffers that the question changed", _differing(state, model.state_dict())
        yield "the input requires a gradient afterwards", x.requires_grad
        yield "modes that the question changed", [path for path, part in model.named_modules() if not part.training]


def _train_once(model: nn.Module, x: torch.Tensor) -> None:
    """Leave gradients behind, as a training loop does: the one before this step is not this step's."""
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.25)


def _gradients(model: nn.Module) -> dict[str, torch.Tensor | None]:
    return {name: None if p.grad is None else p.grad.detach().clone() for name, p in model.named_parameters()}


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in before if not _same(before[name], after.get(name))]


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


def _plain(found: Any) -> Any:
    """Return a pair as a sentence, so that a difference is told whole."""
    if isinstance(found, (tuple, list)) and len(found) == 2 and all(isinstance(part, str) for part in found):
        return f"{found[0]} of {found[1] or 'the root'}" if found[0] in ("forward", "backward") else f"the {found[0]}"
    return "nobody" if found is None else found


def reference_locate_nan(model: nn.Module, x: torch.Tensor, loss_of: Callable) -> tuple[str, str] | None:
    """Return who made the first value that is not finite; the reference of this exercise, which asks a copy."""
    if not finite([x]):
        return ("input", "")
    twin, x = copy.deepcopy(model), x.detach().clone().requires_grad_(True)
    forward: list[str] = []
    backward: list[str] = []
    arrived: dict[str, bool] = {}
    for path, part in twin.named_modules():
        part.register_forward_hook(_forward_hook(path, forward))
        part.register_full_backward_hook(_backward_hook(path, backward, arrived))
    loss = loss_of(twin(x))
    if forward:
        return ("forward", forward[0])
    loss.backward()
    backward += [
        path
        for path, part in twin.named_modules()
        if arrived.get(path) and not finite(p.grad for p in part.parameters(recurse=False))
    ]
    if backward:
        return ("backward", backward[0])
    return None if finite([loss, x.grad]) and all(arrived.values()) else ("loss", "")


def _forward_hook(path: str, guilty: list[str]) -> Callable[..., None]:
    def hook(module: nn.Module, args: tuple, output: Any) -> None:
        if finite(args) and not finite([output]):
            guilty.append(path)

    return hook


def _backward_hook(path: str, guilty: list[str], arrived: dict[str, bool]) -> Callable[..., None]:
    def hook(module: nn.Module, grad_input: tuple, grad_output: tuple) -> None:
        arrived[path] = finite(grad_output)
        if arrived[path] and not finite(grad_input):
            guilty.append(path)

    return hook


def finite(values: Iterable[Any]) -> bool:
    """Return whether every tensor among the values is finite; what is no tensor counts as finite."""
    return all(bool(torch.isfinite(value).all()) for value in values if isinstance(value, torch.Tensor))


card = Card(
    goal="Write the detector that names the module which made the first nan or inf, and no innocent one.",
    may_change="the body of `locate_nan`, and functions of your own beside it; the signature stays",
    specification=(
        "`locate_nan(model, x, loss_of)` looks at one training step: `loss_of(model(x)).backward()`",
        "not finite means nan or infinite. All finite: return `None`",
        "`x` itself is not finite: return `('input', '')`",
        "a module got finite inputs and returned something that is not finite: return `('forward', path)` of the first "
        "and innermost such module, with its path in `named_modules()`",
        "forward is fine, and a module gets a finite `grad_output` while its `grad_input`, or the gradient of one of "
        "its own parameters, is not finite: return `('backward', path)` of the first and innermost such module",
        "no module is guilty, and still the loss or a gradient that it sends is not finite: return `('loss', '')`",
        "modules take and return one tensor, do nothing in place, and at most one thing is wrong",
        "afterwards the model is as it was: hooks, parameters, buffers, gradients and modes; so is `x`",
    ),
    minutes=40,
    difficulty=4,
    importance=4,
    prerequisites=(
        "register_forward_hook and register_full_backward_hook",
        "grad_input and grad_output",
        "copy.deepcopy",
    ),
)

hints = Hints(
    question=(
        "Take three layers by hand, the middle one a square root at zero. Write down for each layer what arrives "
        "during backward and what it sends on. Which of the two tells the one that made the infinity from the one "
        "that was handed it? And what is `grad_input` for a module whose input needs no gradient?"
    ),
    template=(
        "def locate_nan(model, x, loss_of):\n"
        "    if ...:\n"
        "        return ('input', '')\n"
        "    twin, x = ...                    # what may be disturbed, and an input that asks for a gradient\n"
        "    forward, backward, arrived = [], [], {}\n\n"
        "    def watch(path, module):\n"
        "        def after_forward(module, args, output):\n"
        "            ...                      # finite in, not finite out\n"
        "        def in_backward(module, grad_input, grad_output):\n"
        "            arrived[path] = ...      # was what arrived finite?\n"
        "            ...\n"
        "        module.register_forward_hook(after_forward)\n"
        "        module.register_full_backward_hook(in_backward)\n\n"
        "    for path, module in twin.named_modules():\n"
        "        watch(path, module)\n"
        "    loss = loss_of(twin(x))\n"
        "    ...                              # forward first, then backward, then parameters, then the loss"
    ),
)

exercise = Exercise(
    name="locate_nan",
    chapter="ch04_hooks",
    parts=("locate_nan",),
    kind="functions",
    calls=(("locate_nan", (Placeholder("model"), Placeholder("x"), Placeholder("loss_of")), {}),),
    points=5,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(reference_locate_nan,),
    weights={
        "a square root at zero": 2.0,
        "a square root at zero, one level down": 2.0,
        "a row divided by its length of zero": 2.0,
        "the input requires a gradient afterwards": 0.25,
        "modes that the question changed": 0.25,
    },
    compared_with="a detector that names who made it",
)

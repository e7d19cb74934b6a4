"""Detectors that name an innocent, name nobody, or disturb what they ask."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Detector:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, model: nn.Module, x: torch.Tensor, loss_of: Callable) -> None:
        self.x, self.loss_of = self.prepared(x), loss_of
        self.twin = self.asked(model)
        self.forward: list[str] = []
        self.backward: list[str] = []
        self.arrived: dict[str, bool] = {}
        self.handles: list[Any] = []

    def prepared(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().clone().requires_grad_(True)

    def asked(self, model: nn.Module) -> nn.Module:
        return copy.deepcopy(model)

    def finite(self, values: Iterable[Any]) -> bool:
        return all(bool(torch.isfinite(v).all()) for v in values if isinstance(v, torch.Tensor))

    def parts(self) -> list[tuple[str, nn.Module]]:
        return list(self.twin.named_modules())

    def data_is_finite(self) -> bool:
        return self.finite([self.x])

    def guilty_in_forward(self, args: tuple, output: Any) -> bool:
        return self.finite(args) and not self.finite([output])

    def guilty_in_backward(self, grad_input: tuple, grad_output: tuple) -> bool:
        return self.finite(grad_output) and not self.finite(grad_input)

    def own_gradients(self) -> list[str]:
        return [
            path
            for path, part in self.parts()
            if self.arrived.get(path) and not self.finite(p.grad for p in part.parameters(recurse=False))
        ]

    def named(self, guilty: list[str]) -> str:
        return guilty[0]

    def otherwise(self, loss: torch.Tensor) -> tuple[str, str] | None:
        fine = self.finite([loss, self.x.grad]) and all(self.arrived.values())
        return None if fine else ("loss", "")

    def leave(self) -> None:
        for handle in self.handles:
            handle.remove()

    def watch(self, path: str, part: nn.Module) -> None:
        def after_forward(module: nn.Module, args: tuple, output: Any) -> None:
            if self.guilty_in_forward(args, output):
                self.forward.append(path)

        def in_backward(module: nn.Module, grad_input: tuple, grad_output: tuple) -> None:
            self.arrived[path] = self.finite(grad_output)
            if self.guilty_in_backward(grad_input, grad_output):
                self.backward.append(path)

        self.handles += [part.register_forward_hook(after_forward), part.register_full_backward_hook(in_backward)]

    def run(self) -> tuple[str, str] | None:
        if not self.data_is_finite():
            return ("input", "")
        for path, part in self.parts():
            self.watch(path, part)
        try:
            return self.step()
        finally:
            self.leave()

    def step(self) -> tuple[str, str] | None:
        loss = self.loss_of(self.twin(self.x))
        if self.forward:
            return ("forward", self.named(self.forward))
        loss.backward()
        self.backward += self.own_gradients()
        if self.backward:
            return ("backward", self.named(self.backward))
        return self.otherwise(loss)


class GradOutputBlamed(_Detector):
    def guilty_in_backward(self, grad_input: tuple, grad_output: tuple) -> bool:
        return not self.finite(grad_output)


class GradInputAlone(_Detector):
    def guilty_in_backward(self, grad_input: tuple, grad_output: tuple) -> bool:
        return not self.finite(grad_input)


class NanOnly(_Detector):
    def finite(self, values: Iterable[Any]) -> bool:
        return not any(bool(torch.isnan(v).any()) for v in values if isinstance(v, torch.Tensor))


class LeavesOnly(_Detector):
    def parts(self) -> list[tuple[str, nn.Module]]:
        return [(path, part) for path, part in self.twin.named_modules() if not list(part.children())]


class OwnGradientsForgotten(_Detector):
    def own_gradients(self) -> list[str]:
        return []


class ForwardNotLookedAt(_Detector):
    def guilty_in_forward(self, args: tuple, output: Any) -> bool:
        return False


class EveryBadOutput(_Detector):
    def guilty_in_forward(self, args: tuple, output: Any) -> bool:
        return not self.finite([output])

    def data_is_finite(self) -> bool:
        return True


class LastOneNamed(_Detector):
    def named(self, guilty: list[str]) -> str:
        return guilty[-1]


class InputWithoutGradient(_Detector):
    def prepared(self, x: torch.Tensor) -> torch.Tensor:
        return x


class HooksLeft(_Detector):
    def asked(self, model: nn.Module) -> nn.Module:
        self.model = model
        self.state = copy.deepcopy(model.state_dict())
        self.gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        return model

    def leave(self) -> None:
        self.model.load_state_dict(self.state)
        for parameter, gradient in zip(self.model.parameters(), self.gradients, strict=True):
            parameter.grad = gradient


class ModelItself(_Detector):
    def asked(self, model: nn.Module) -> nn.Module:
        return model


class LossForgotten(_Detector):
    def otherwise(self, loss: torch.Tensor) -> tuple[str, str] | None:
        return None


def _detects_with(made: type[_Detector]) -> Callable:
    def locate_nan(model: nn.Module, x: torch.Tensor, loss_of: Callable) -> tuple[str, str] | None:
        return made(model, x, loss_of).run()

    return locate_nan


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_detects_with(made),))


misconceptions = (
    _misconception(
        "grad_output_blamed",
        GradOutputBlamed,
        "a square root at zero",
        "a module is blamed for what arrives at it",
        "During backward, from which side does grad_output come to a module: did the module make it, or was it handed "
        "to it?",
        "the section on who made the nan in this chapter",
    ),
    _misconception(
        "grad_input_alone",
        GradInputAlone,
        "a loss whose gradient breaks",
        "a module is blamed for what it passes on, whatever arrived",
        "Let the loss itself send a nan. Which module does your detector name, and what did it do wrong?",
        "the section on who made the nan in this chapter",
    ),
    _misconception(
        "nan_only",
        NanOnly,
        "a square root at zero",
        "only nan is looked for, and an infinity passes",
        "What is the gradient of a square root at zero, and what does it become when the next module multiplies it "
        "by zero?",
        "the section on who made the nan in this chapter",
    ),
    _misconception(
        "leaves_only",
        LeavesOnly,
        "an operation in a module's own forward",
        "only modules without children are watched",
        "A block computes something between two of its children. Which of your hooks sees that operation go wrong?",
        "the section on what hooks do not see in this chapter",
    ),
    _misconception(
        "own_gradients_forgotten",
        OwnGradientsForgotten,
        "a weight whose own gradient breaks",
        "only what flows between modules is looked at",
        "Backward makes two kinds of gradient in a module: one is passed on. Where does the other end up?",
        "the section on what grad_input holds in this chapter",
    ),
    _misconception(
        "forward_not_looked_at",
        ForwardNotLookedAt,
        "a row divided by its length of zero",
        "only backward is watched",
        "When the loss is already nan, what arrives at the last module during backward, and where was it made?",
        "the card of this exercise: which phases does it name?",
    ),
    _misconception(
        "every_bad_output",
        EveryBadOutput,
        "a nan in the data",
        "a module is blamed for its output, whatever came in",
        "Put a nan into one row of the data. Which module do you accuse, and what did it receive?",
        "the card of this exercise",
    ),
    _misconception(
        "last_one_named",
        LastOneNamed,
        "a row divided by its length of zero",
        "every accusation overwrites the one before, so the outermost module is named",
        "A child and the modules around it return the same nan. In which order do their hooks fire, and which one "
        "do you keep?",
        "the section on the order of firing in this chapter",
    ),
    _misconception(
        "input_without_gradient",
        InputWithoutGradient,
        "the same operation in the first module",
        "the first module is never accused, because its grad_input is None",
        "Print grad_input of the first module. What is it when nobody asked for the gradient of x?",
        "the section on what grad_input holds in this chapter",
    ),
    _misconception(
        "hooks_left",
        HooksLeft,
        "modules whose hooks differ afterwards",
        "the hooks stay on the model",
        "Call the detector twice on one model. How many hooks does each module carry then?",
        "the section on handles in this chapter",
    ),
    _misconception(
        "model_itself",
        ModelItself,
        "gradients that the question changed",
        "the step runs on the model itself and adds to its gradients and statistics",
        "Print a `.grad` and a `running_mean` before and after your question. Whose step was that?",
        "the section on state_dict in chapter 3",
    ),
    _misconception(
        "loss_forgotten",
        LossForgotten,
        "a loss that breaks",
        "nobody is named when the loss itself is at fault",
        "Take the logarithm of a negative number in the loss. Every module is innocent: is all well?",
        "the card of this exercise",
    ),
)

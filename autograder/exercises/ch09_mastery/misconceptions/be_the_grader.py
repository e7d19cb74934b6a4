"""Probes with a blind spot, and probes that cry wolf. Each leaves out or adds one thing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception

_ROWS = ([1.0, 5.0], [2.0, -1.0], [3.0, 0.5], [6.0, 0.0])


def _remembered(layer: Any) -> list[torch.Tensor]:
    return [layer.running_mean, layer.running_var, layer.num_batches_tracked]


class _Probing:
    """The stages of a probe, one method each, so that a misconception can get exactly one of them wrong."""

    def settings(self) -> dict[str, Any]:
        return {"eps": 0.5, "momentum": 0.3}

    def rows(self) -> torch.Tensor:
        return torch.tensor(_ROWS)

    def names(self, layer: Any) -> Iterator[tuple]:
        yield "file", sorted(layer.state_dict())
        yield "parameters", sorted(name for name, _ in layer.named_parameters())

    def prepare(self, layer: Any) -> None:
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([2.0, -1.0]))
            layer.bias.copy_(torch.tensor([0.5, 3.0]))

    def loss(self, y: torch.Tensor) -> torch.Tensor:
        return y.pow(3).sum()

    def training(self, layer: Any) -> Iterator[tuple]:
        x = self.rows().requires_grad_(True)
        y = layer(x)
        yield "output", y
        yield from self.after_training(layer)
        yield from self.gradient(x, y)

    def gradient(self, x: torch.Tensor, y: torch.Tensor) -> Iterator[tuple]:
        self.loss(y).backward()
        yield "gradient", x.grad

    def after_training(self, layer: Any) -> Iterator[tuple]:
        yield "remembered", _remembered(layer)

    def evaluation(self, layer: Any) -> Iterator[tuple]:
        layer.eval()
        rows = self.rows() + 1
        yield "eval output", layer(rows)
        yield from self.untouched(rows)
        yield "remembered after eval", _remembered(layer)

    def untouched(self, rows: torch.Tensor) -> Iterator[tuple]:
        yield "input", rows

    def training_again(self, layer: Any) -> Iterator[tuple]:
        yield "training again", layer.train()(self.rows())

    def average(self, make: Any) -> Iterator[tuple]:
        layer = make(2, momentum=None)
        for factor in (1.0, 4.0):
            layer(factor * self.rows())
        yield "average", layer.running_mean

    def wide(self, layer: Any) -> Iterator[tuple]:
        yield "float64", copy.deepcopy(layer).double().eval()(self.rows().double()), 1e-4

    def run(self, make: Any) -> Iterator[tuple]:
        layer = make(2, **self.settings())
        yield from self.names(layer)
        self.prepare(layer)
        yield from self.training(layer)
        yield from self.evaluation(layer)
        yield from self.training_again(layer)
        yield from self.average(make)
        yield from self.wide(layer)


class OneOutputOnly(_Probing):
    def run(self, make: Any) -> Iterator[tuple]:
        yield "output", make(2)(self.rows())


class BitForBit(_Probing):
    def training(self, layer: Any) -> Iterator[tuple]:
        yield "equal to torch", torch.equal(layer(self.rows()), self.by_torch(layer))
        yield from super().training(layer)

    def by_torch(self, layer: Any) -> torch.Tensor:
        other = nn.BatchNorm1d(2, **self.settings()).to(layer.weight.device)
        self.prepare(other)
        return other(self.rows())


class OrderOfNames(_Probing):
    def names(self, layer: Any) -> Iterator[tuple]:
        yield "file", list(layer.state_dict())
        yield "parameters", sorted(name for name, _ in layer.named_parameters())


class InnerLife(_Probing):
    def names(self, layer: Any) -> Iterator[tuple]:
        yield from super().names(layer)
        yield "children", [name for name, _ in layer.named_children()]


class ClassLookedAt(_Probing):
    def names(self, layer: Any) -> Iterator[tuple]:
        yield from super().names(layer)
        yield "printout", repr(layer)


class WeightsOfOne(_Probing):
    def prepare(self, layer: Any) -> None:
        pass


class DefaultSettings(_Probing):
    def settings(self) -> dict[str, Any]:
        return {}


class WideTolerance(_Probing):
    def rows(self) -> torch.Tensor:
        return torch.tensor(_ROWS).repeat(100, 1)

    def run(self, make: Any) -> Iterator[tuple]:
        for name, value, *_ in super().run(make):
            # Names are compared as they are; every number may differ by so much.
            yield (name, value) if name in ("file", "parameters") else (name, value, 0.3)


class NoGradient(_Probing):
    def gradient(self, x: torch.Tensor, y: torch.Tensor) -> Iterator[tuple]:
        return iter(())


class EvalLast(_Probing):
    def training_again(self, layer: Any) -> Iterator[tuple]:
        return iter(())


class InputNotLookedAt(_Probing):
    def untouched(self, rows: torch.Tensor) -> Iterator[tuple]:
        return iter(())


class NamesNotLookedAt(_Probing):
    def names(self, layer: Any) -> Iterator[tuple]:
        return iter(())


class OneDtype(_Probing):
    def wide(self, layer: Any) -> Iterator[tuple]:
        return iter(())


def _function(kind: type[_Probing]) -> Callable:
    def probe(make: Any) -> Iterator[tuple]:
        return kind().run(make)

    probe.__name__ = kind.__name__
    return probe


def _misconception(kind: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_function(kind),))


_CAUGHT = "rejects the one that is wrong in "
_SECTION = "the section «What a check is worth» in this chapter"

misconceptions = (
    _misconception(
        OneOutputOnly,
        "one_output_in_training_mode",
        _CAUGHT + "the output in eval mode",
        "the probe looks at one output and at nothing else",
        "Most faults of a BatchNorm show in another mode, or in what it keeps. Which stages of its life do you visit?",
        _SECTION,
    ),
    _misconception(
        BitForBit,
        "equality_bit_for_bit",
        "accepts a design that sums in float64",
        "a right layer that adds in another order is rejected",
        "Two right layers sum the same numbers in another order. Are their results equal, or close?",
        _SECTION,
    ),
    _misconception(
        OrderOfNames,
        "order_of_names_asked_for",
        "accepts a design that registers in another order",
        "the order of registration is compared, or what is in no file",
        "A right layer may register in another order, or keep a buffer that is in no file. Which of your observations "
        "minds that, and does anything that loads the file or trains the model?",
        _SECTION,
    ),
    _misconception(
        InnerLife,
        "inner_life_asked_for",
        "accepts a design with a helper module",
        "the probe looks at how a layer is built",
        "A colleague splits the layer into two modules, and it computes the same. Should your probe mind?",
        _SECTION,
    ),
    _misconception(
        ClassLookedAt,
        "class_looked_at",
        "accepts a design that calls torch's function",
        "the name of the class, or its printout, is compared",
        "A colleague's class has another name and prints in another way. Which of your observations asks for that, and "
        "what does a layer do differently because of it?",
        _SECTION,
    ),
    _misconception(
        WeightsOfOne,
        "weights_left_at_one",
        _CAUGHT + "the weight",
        "weight and bias keep the values that hide their absence",
        "With which values of weight and bias does a layer that ignores them give the same output?",
        _SECTION,
    ),
    _misconception(
        DefaultSettings,
        "default_settings_only",
        _CAUGHT + "eps",
        "the settings are the ones that a wrong layer may have hard-coded",
        "A layer has written 1e-5 into its forward. With which eps do you ask it?",
        _SECTION,
    ),
    _misconception(
        WideTolerance,
        "many_rows_and_a_wide_tolerance",
        _CAUGHT + "the variance it divides by",
        "the difference between the two variances is smaller than what the probe forgives",
        "By which factor do the two variances of n rows differ? What is it for your n, and what do you forgive?",
        "chapter 3, «Which variance goes where»",
    ),
    _misconception(
        NoGradient,
        "no_backward",
        _CAUGHT + "the gradient of the input",
        "the probe never calls backward",
        "Two layers give the same output and other gradients. Does your probe see them as one?",
        _SECTION,
    ),
    _misconception(
        EvalLast,
        "eval_is_the_last_thing",
        _CAUGHT + "training after eval",
        "nobody looks at what comes after eval",
        "Every epoch goes from training to eval and back. Does your probe go back?",
        _SECTION,
    ),
    _misconception(
        InputNotLookedAt,
        "input_not_looked_at",
        _CAUGHT + "its input",
        "a layer that writes over what it was given passes",
        "You hand over a tensor and get another one back. Which of the two do you look at afterwards?",
        _SECTION,
    ),
    _misconception(
        NamesNotLookedAt,
        "registries_not_looked_at",
        _CAUGHT + "its parameters",
        "the probe asks for values and never for what is trained and saved",
        "A statistic may be a buffer or a parameter, with the same numbers. Which of your observations would tell?",
        "chapter 3, «Three homes for a tensor»",
    ),
    _misconception(
        OneDtype,
        "one_dtype",
        _CAUGHT + "float64",
        "everything is asked in float32",
        "What does the layer return after `.double()`? Who has asked it?",
        "chapter 3, «What `.to()` converts»",
    ),
)

"""Prunings that choose the wrong channels, or do not last. Each gets one decision wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception


class _Pruning:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def strengths(self, weight: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(weight.flatten(1), dim=1)

    def count(self, amount: float, channels: int) -> int:
        return round(amount * channels)

    def choose(self, strengths: torch.Tensor, amount: float) -> list[int]:
        return strengths.argsort(stable=True)[: self.count(amount, len(strengths))].tolist()

    def zero(self, layer: Any, pruned: list[int]) -> None:
        with torch.no_grad():
            layer.weight[pruned] = 0

    def enforce(self, layer: Any, pruned: list[int]) -> None:
        layer.register_forward_pre_hook(lambda module, args: self.zero(module, pruned))

    def run(self, layer: Any, amount: float) -> list[int]:
        with torch.no_grad():
            pruned = self.choose(self.strengths(layer.weight), amount)
        self.zero(layer, pruned)
        self.enforce(layer, pruned)
        return sorted(pruned)


class NormOverThreeAxes(_Pruning):
    def strengths(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.norm(dim=(1, 2, 3))


class Quantile(_Pruning):
    def choose(self, strengths: torch.Tensor, amount: float) -> list[int]:
        kept = strengths > strengths.quantile(amount)
        return (~kept).nonzero().flatten().tolist()


class RoundedDown(_Pruning):
    def count(self, amount: float, channels: int) -> int:
        return int(amount * channels)


class SumOfSizes(_Pruning):
    def strengths(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.abs().flatten(1).sum(1)


class Strongest(_Pruning):
    def choose(self, strengths: torch.Tensor, amount: float) -> list[int]:
        return super().choose(-strengths, amount)


class OnlyOnce(_Pruning):
    def enforce(self, layer: Any, pruned: list[int]) -> None:
        pass


class GradientsOnly(_Pruning):
    def enforce(self, layer: Any, pruned: list[int]) -> None:
        def mask(gradient: torch.Tensor) -> torch.Tensor:
            gradient = gradient.clone()
            gradient[pruned] = 0
            return gradient

        layer.weight.register_hook(mask)


class NewParameter(_Pruning):
    def zero(self, layer: Any, pruned: list[int]) -> None:
        weight = layer.weight.detach().clone()
        weight[pruned] = 0
        layer.weight = nn.Parameter(weight)

    def enforce(self, layer: Any, pruned: list[int]) -> None:
        layer.register_forward_pre_hook(lambda module, args: _Pruning.zero(self, module, pruned))


class WithoutNoGrad(_Pruning):
    def zero(self, layer: Any, pruned: list[int]) -> None:
        layer.weight[pruned] = 0


class OutputZeroed(_Pruning):
    def zero(self, layer: Any, pruned: list[int]) -> None:
        pass

    def enforce(self, layer: Any, pruned: list[int]) -> None:
        def silence(module: nn.Module, args: tuple, output: torch.Tensor) -> torch.Tensor:
            mask = torch.ones(output.shape[1]).to(output)
            mask[pruned] = 0
            return output * mask.view(1, -1, *[1] * (output.dim() - 2))

        layer.register_forward_hook(silence)


class OriginalInTheClosure(_Pruning):
    def enforce(self, layer: Any, pruned: list[int]) -> None:
        layer.register_forward_pre_hook(lambda module, args: self.zero(layer, pruned))


def _function(kind: type[_Pruning]) -> Callable:
    def prune_channels(layer: nn.Module, amount: float) -> list[int]:
        return kind().run(layer, amount)

    prune_channels.__name__ = kind.__name__
    return prune_channels


def _misconception(kind: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_function(kind),))


_SECTION = "the section «Channels that stay silent» in this chapter"
_LASTING = "silent channels after three more steps"

misconceptions = (
    _misconception(
        NormOverThreeAxes,
        "norm_over_three_axes",
        "silent channels",
        "the norm is taken over axes that torch does not accept together",
        "How many axes has the weight of a Linear, and how many does a matrix norm take? Which shape would suit every "
        "kind of layer?",
        _SECTION,
    ),
    _misconception(
        Quantile,
        "threshold_at_a_quantile",
        "how many channels are silent",
        "everything up to a quantile is pruned, which is not the share asked for",
        "Take ten channels of equal strength and a share of 0.2. How many of them lie above your threshold?",
        _SECTION,
    ),
    _misconception(
        RoundedDown,
        "count_rounded_down",
        "how many channels are silent",
        "the number of channels is cut instead of rounded",
        "How many channels are 0.3 of nine in the specification, and how many in yours?",
        "the card of this exercise",
    ),
    _misconception(
        SumOfSizes,
        "strength_by_the_sum_of_sizes",
        "channels named",
        "channels are ranked by another norm",
        "Compare (3, 0, 0) with (1, 1, 1.5): which is the weaker by its L2 norm, and which by yours?",
        "the card of this exercise",
    ),
    _misconception(
        Strongest,
        "strongest_channels_pruned",
        "channels named",
        "the list is sorted the other way round",
        "Print the strengths beside your choice. At which end of the order did you cut?",
        "the card of this exercise",
    ),
    _misconception(
        OnlyOnce,
        "zeroed_once",
        _LASTING,
        "the channels are set to zero once and grow again",
        "A weight of zero has a gradient all the same. What does the next step make of it?",
        _SECTION,
    ),
    _misconception(
        GradientsOnly,
        "only_the_gradients_are_masked",
        _LASTING,
        "without a gradient, the optimizer's momentum still moves the weights",
        "The optimizer was made before and remembers earlier steps. What does SGD add to a weight whose gradient is 0?",
        _SECTION,
    ),
    _misconception(
        NewParameter,
        "weight_replaced_by_a_new_parameter",
        "output after three more steps",
        "the optimizer goes on training a weight that nobody uses",
        "Is `layer.weight` still the tensor that the optimizer holds? How would you compare the two?",
        "chapter 2, «What the optimizer holds»",
    ),
    _misconception(
        WithoutNoGrad,
        "weight_written_to_under_autograd",
        "silent channels",
        "a leaf that requires a gradient is changed in place",
        "Read the error: who is watching the tensor that you wrote to, and how do you ask them to look away?",
        "chapter 3, «Updating a buffer»",
    ),
    _misconception(
        OutputZeroed,
        "outputs_zeroed_with_their_bias",
        "output",
        "the output is set to zero, bias included, and the weights stay",
        "Feed the layer zeros. What should a pruned channel answer, and what does yours?",
        "the card of this exercise",
    ),
    _misconception(
        OriginalInTheClosure,
        "hook_bound_to_one_layer",
        "silent channels of a deep copy, trained on",
        "the hook silences the layer it was written for, whichever is called",
        "A deep copy brings its hooks along. Which layer does your hook write to when the copy is called?",
        "chapter 4, «One function a path»",
    ),
)

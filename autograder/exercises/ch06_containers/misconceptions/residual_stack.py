"""Wrong residual stacks. Each changes one decision of a stack that is otherwise right."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from autograder.exercise import Misconception
from autograder.exercises.ch06_containers.residual_stack import ReferenceResidualStack


class PlainLists(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        norms, layers = list(self.norms), list(self.layers)
        del self.norms, self.layers
        self.norms, self.layers = norms, layers


class OneLayerManyTimes(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        self.norms = nn.ModuleList([nn.LayerNorm(features)] * depth)
        self.layers = nn.ModuleList([nn.Linear(features, features)] * depth)


class NoSkip(ReferenceResidualStack):
    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        return self.layers[number](torch.relu(self.norms[number](x)))


class SkipFromTheStart(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = [x]
        for number in range(len(self.layers)):
            values.append(self.step(number, values[-1]) - values[-1] + x)
        return values if return_all else values[-1]


class NormAfterwards(ReferenceResidualStack):
    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        return self.norms[number](x + self.layers[number](torch.relu(x)))


class ActivationOutside(ReferenceResidualStack):
    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        return x + torch.relu(self.layers[number](self.norms[number](x)))


class SkipOfTheNormalised(ReferenceResidualStack):
    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[number](x)
        return x + self.layers[number](torch.relu(x))


class InPlace(ReferenceResidualStack):
    def step(self, number: int, x: torch.Tensor) -> torch.Tensor:
        x += super().step(number, x) - x
        return x


class InPlaceOnACopy(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = [x]
        x = x.clone()
        for number in range(len(self.layers)):
            x += self.step(number, x) - x
            values.append(x)
        return values if return_all else x


class InputMissing(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = super().forward(x, True)
        return values[1:] if return_all else values[-1]


class BranchesReturned(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = super().forward(x, True)
        branches = [after - before for before, after in zip(values, values[1:], strict=False)]
        return [x, *branches] if return_all else values[-1]


class ValuesDetached(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = super().forward(x, True)
        return [value.detach() for value in values] if return_all else values[-1]


class PlainListOfLayers(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


class SequentialOfLayers(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        self.norms, self.layers = nn.Sequential(*self.norms), nn.Sequential(*self.layers)


class SharedLayer(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        self.layers = nn.ModuleList([nn.Linear(features, features)] * depth)


class SharedNorm(ReferenceResidualStack):
    def __init__(self, features: int, depth: int) -> None:
        super().__init__(features, depth)
        self.norms = nn.ModuleList([nn.LayerNorm(features)] * depth)


class FirstLayerLeftOut(ReferenceResidualStack):
    def forward(self, x: torch.Tensor, return_all: bool = False) -> Any:
        values = [x]
        for number in range(1, len(self.layers)):
            values.append(self.step(number, values[-1]))
        return values if return_all else values[-1]


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_RESIDUAL = "the section «A layer that adds» in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "plain_lists",
        PlainLists,
        "parameters()",
        "the layers are kept in plain lists",
        "How many parameters does your stack report? Who would have to know about your lists?",
        "chapter 0, where the hidden layers never moved",
    ),
    _misconception(
        "one_layer_many_times",
        OneLayerManyTimes,
        "parameters()",
        "a list that holds one and the same layer depth times",
        "Print the names of your parameters for depth 3. How many different layers did the multiplied list make?",
        "the section «One layer, three names» in this chapter",
    ),
    _misconception(
        "sequential_of_layers",
        SequentialOfLayers,
        "each is an nn.ModuleList",
        "the layers are kept in an nn.Sequential, which has a forward of its own",
        "What does `net.layers(x)` do with yours, and where would the additions be?",
        "the section «Which container when» in this chapter",
    ),
    _misconception(
        "no_skip",
        NoSkip,
        "output",
        "the input of a layer is not added to what it gives",
        "Set all weights to 0 in your head. What should the stack return, and what does yours?",
        _RESIDUAL,
    ),
    _misconception(
        "skip_from_the_start",
        SkipFromTheStart,
        "output",
        "every layer adds to the first input",
        "Which value does the second layer read, and which value does it add to in yours?",
        _RESIDUAL,
    ),
    _misconception(
        "norm_afterwards",
        NormAfterwards,
        "output",
        "the normalisation stands after the addition (post-norm)",
        "Follow x from the input to the output along the sum. Does anything change it on that road in the card's rule?",
        _CARD,
    ),
    _misconception(
        "activation_outside",
        ActivationOutside,
        "output",
        "the ReLU stands after the linear layer, so that a step can only add",
        "Can a step of yours make a value smaller? Where does the card put the ReLU?",
        _CARD,
    ),
    _misconception(
        "skip_of_the_normalised",
        SkipOfTheNormalised,
        "output",
        "the normalised value is added instead of the value",
        "Which x stands on the left of your plus sign: the one that came in, or the one you made of it?",
        _RESIDUAL,
    ),
    _misconception(
        "in_place",
        InPlace,
        "the input is left as it was",
        "the sum is written into x itself",
        "Print x before and after the call. Which objects does your list of values hold, if all of them are one?",
        "the section «The values between» in this chapter",
    ),
    _misconception(
        "in_place_on_a_copy",
        InPlaceOnACopy,
        "values with return_all",
        "the input is copied once, and all sums are written into that copy",
        "The caller's x is safe. Which object does each entry of your list hold, from the second one on?",
        "the section «The values between» in this chapter",
    ),
    _misconception(
        "input_missing",
        InputMissing,
        "number of values with return_all",
        "the list begins after the first layer",
        "How many values does the card promise for depth 2, and which one is the first?",
        _CARD,
    ),
    _misconception(
        "branches_returned",
        BranchesReturned,
        "values with return_all",
        "the list holds what each layer adds, not the value after it",
        "Is the last entry of your list what `net(x)` returns?",
        _CARD,
    ),
    _misconception(
        "values_detached",
        ValuesDetached,
        "gradient through the value after the first layer",
        "the values between are cut off from the graph",
        "Somebody adds a loss on the value after the first layer. Which parameters would it reach?",
        "the section «The values between» in this chapter",
    ),
    _misconception(
        "plain_list_of_layers",
        PlainListOfLayers,
        "parameters()",
        "the linear layers are kept in a plain list, the norms are not",
        "Print the names of your parameters. Which of your two lists does not occur in them?",
        "chapter 0, where the hidden layers never moved",
    ),
    _misconception(
        "shared_layer",
        SharedLayer,
        "parameters()",
        "all steps share one linear layer",
        "For depth 3, how many names with `layers` are there among your parameters?",
        "the section «One layer, three names» in this chapter",
    ),
    _misconception(
        "shared_norm",
        SharedNorm,
        "parameters()",
        "all steps share one normalisation",
        "For depth 3, how many names with `norms` are there among your parameters?",
        "the section «One layer, three names» in this chapter",
    ),
    _misconception(
        "first_layer_left_out",
        FirstLayerLeftOut,
        "output",
        "the loop starts at 1, and the first layer never runs",
        "Which layers of a stack of two run in yours? Count them with hooks. Which one is missing?",
        _CARD,
    ),
)

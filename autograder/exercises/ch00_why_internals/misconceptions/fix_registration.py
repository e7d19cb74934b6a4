"""Half-mended models. Each leaves or makes one fault; the rest is registered as it should be."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from autograder.exercise import Misconception


class _Model(nn.Module):
    """The four parts, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, features: int, width: int, depth: int) -> None:
        super().__init__()
        self.entry = nn.Linear(features, width)
        self.add_hidden([nn.Linear(width, width) for _ in range(depth)])
        self.add_scale(torch.ones(width))
        self.add_heads({"price": nn.Linear(width, 1), "kind": nn.Linear(width, 3)})

    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = nn.ModuleList(layers)

    def add_scale(self, ones: torch.Tensor) -> None:
        self.scale = nn.Parameter(ones)

    def add_heads(self, heads: dict[str, nn.Linear]) -> None:
        self.heads = nn.ModuleDict(heads)

    def through_hidden(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return x

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.through_hidden(torch.relu(self.entry(x))) * self.scale
        return {name: head(x) for name, head in self.heads.items()}


class TensorLeftPlain(_Model):
    def add_scale(self, ones: torch.Tensor) -> None:
        self.scale = ones.requires_grad_(True)


class ScaleAsBuffer(_Model):
    def add_scale(self, ones: torch.Tensor) -> None:
        self.register_buffer("scale", ones)


class DictLeftPlain(_Model):
    def add_heads(self, heads: dict[str, nn.Linear]) -> None:
        self.heads = heads


class OnlyTheListMended(TensorLeftPlain, DictLeftPlain):
    pass


class ParametersByHand(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = layers

    def add_scale(self, ones: torch.Tensor) -> None:
        self.scale = ones.requires_grad_(True)

    def add_heads(self, heads: dict[str, nn.Linear]) -> None:
        self.heads = heads

    def parameters(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        for layer in (self.entry, *self.hidden, *self.heads.values()):
            yield from layer.parameters()
        yield self.scale


class LayersBesideTheList(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = layers
        for number, layer in enumerate(layers):
            setattr(self, f"hidden{number}", layer)


class OneLayerManyTimes(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = nn.ModuleList([layers[0]] * len(layers))


class RegisteredInForward(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = layers

    def through_hidden(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden = nn.ModuleList(self.hidden)
        return super().through_hidden(x)


class OneReluForAll(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = nn.Sequential(*layers)

    def through_hidden(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.hidden(x))


class ReluAsLayer(_Model):
    def add_hidden(self, layers: list[nn.Linear]) -> None:
        self.hidden = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))

    def through_hidden(self, x: torch.Tensor) -> torch.Tensor:
        return self.hidden(x)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


_WATCHED = "the section on what nn.Module watches in this chapter"
_CARD = "the card of this exercise"

misconceptions = (
    _misconception(
        "tensor_left_plain",
        TensorLeftPlain,
        "dtype of the scale after double()",
        "the scale requires a gradient but is no parameter",
        "The scale gets a gradient, and still does not move when you step. Who told the optimizer about it?",
        "the section on gradients that nobody uses in this chapter",
    ),
    _misconception(
        "scale_as_buffer",
        ScaleAsBuffer,
        "names of the parameters",
        "the scale is saved and moved, and never trained",
        "Your file has the key `scale`. Is the name also in `named_parameters()`, from which the optimizer lives?",
        _WATCHED,
    ),
    _misconception(
        "only_the_list_mended",
        OnlyTheListMended,
        "numbers that can be trained",
        "the list is mended, the tensor and the dict are left",
        "The hidden layers have names now. Lay `named_parameters()` beside the lines of `__init__`: which two lines "
        "still leave no name behind?",
        "the section on gradients that nobody uses in this chapter",
    ),
    _misconception(
        "dict_left_plain",
        DictLeftPlain,
        "names of the parameters",
        "the heads stay in a plain dict",
        "Which of the four attributes is still a type that Python brought along and torch does not look into?",
        _WATCHED,
    ),
    _misconception(
        "parameters_by_hand",
        ParametersByHand,
        "keys of the state_dict",
        "parameters() is overridden and everything else is left as it was",
        "Your `parameters()` is complete. What does `state_dict()` hold, and does it ever call your method?",
        "the section on the list that works in this chapter",
    ),
    _misconception(
        "layers_beside_the_list",
        LayersBesideTheList,
        "keys of the state_dict",
        "every layer is registered under a new name beside a plain list",
        "The layers train now. Under which names would a file that somebody saved from the mended model look for them?",
        _CARD,
    ),
    _misconception(
        "one_layer_many_times",
        OneLayerManyTimes,
        "numbers that can be trained",
        "the hidden layers are one layer, listed several times",
        "Count the hidden weights: how many numbers should `depth` layers hold, and how many does your model hold?",
        _CARD,
    ),
    _misconception(
        "registered_in_forward",
        RegisteredInForward,
        "names of the parameters",
        "the list is registered at the first call, when the optimizer already exists",
        "At which moment does an optimizer ask for the parameters, and which of yours exist by then?",
        _WATCHED,
    ),
    _misconception(
        "one_relu_for_all",
        OneReluForAll,
        "outputs",
        "all hidden layers run in a row, with a single relu at the end",
        "Two linear layers with nothing between them are one linear layer. How often does the broken model apply relu?",
        _CARD,
    ),
    _misconception(
        "relu_as_layer",
        ReluAsLayer,
        "keys of the state_dict",
        "the relus stand among the hidden layers and take numbers of their own",
        "Your outputs are right. Which number does the second hidden layer carry in the keys of the file?",
        _CARD,
    ),
)

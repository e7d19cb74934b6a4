"""Wrong layers. Each puts one thing in the wrong place, or counts at the wrong time."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class _Layer(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.place_weight(in_features, out_features)
        self.place_bias(out_features, bias)
        self.place_count()
        self.place_norm(out_features)

    def place_weight(self, in_features: int, out_features: int) -> None:
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features**0.5)

    def place_bias(self, out_features: int, bias: bool) -> None:
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)

    def place_count(self) -> None:
        self.register_buffer("running_count", torch.tensor(0))

    def place_norm(self, out_features: int) -> None:
        self.norm = nn.LayerNorm(out_features)

    def count(self) -> None:
        if self.training:
            self.running_count += 1

    def linear(self, x: torch.Tensor) -> torch.Tensor:
        out = x @ self.weight.T
        return out if self.bias is None else out + self.bias

    def normalise(self, out: torch.Tensor) -> torch.Tensor:
        return self.norm(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count()
        return self.normalise(self.linear(x))


class CountInPlainTensor(_Layer):
    def place_count(self) -> None:
        self.running_count = torch.tensor(0)


class CountAsParameter(_Layer):
    def place_count(self) -> None:
        self.running_count = nn.Parameter(torch.tensor(0), requires_grad=False)


class CountAsFloat(_Layer):
    def place_count(self) -> None:
        self.register_buffer("running_count", torch.tensor(0.0))


class CountAsNumber(_Layer):
    def place_count(self) -> None:
        self.running_count = 0


class CountInZerosOfOne(_Layer):
    def place_count(self) -> None:
        self.register_buffer("running_count", torch.zeros(1))


class CountAlways(_Layer):
    def count(self) -> None:
        self.running_count += 1


class CountRebound(_Layer):
    def count(self) -> None:
        if self.training:
            self.running_count = self.running_count + 1


class BiasPlainNone(_Layer):
    def place_bias(self, out_features: int, bias: bool) -> None:
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None


class BiasOfZeros(_Layer):
    def place_bias(self, out_features: int, bias: bool) -> None:
        self.bias = nn.Parameter(torch.zeros(out_features), requires_grad=bias)


class NormWithoutParameters(_Layer):
    def place_norm(self, out_features: int) -> None:
        self.width = out_features

    def normalise(self, out: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(out, (self.width,))


class BiasAfterNorm(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count()
        out = self.norm(x @ self.weight.T)
        return out if self.bias is None else out + self.bias


class WeightAsItMultiplies(_Layer):
    def place_weight(self, in_features: int, out_features: int) -> None:
        self.weight = nn.Parameter(torch.randn(in_features, out_features) / in_features**0.5)

    def linear(self, x: torch.Tensor) -> torch.Tensor:
        out = x @ self.weight
        return out if self.bias is None else out + self.bias


class WeightAsLinearStarts(_Layer):
    def place_weight(self, in_features: int, out_features: int) -> None:
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)


class WeightUnscaled(_Layer):
    def place_weight(self, in_features: int, out_features: int) -> None:
        self.weight = nn.Parameter(torch.randn(out_features, in_features))


def _misconception(part: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (part,))


_TEMPLATE = "the section «The template of a layer» in this chapter"
_BUFFERS = "chapter 3, «Three homes for a tensor»"

misconceptions = (
    _misconception(
        CountInPlainTensor,
        "count_in_a_plain_tensor",
        "buffers()",
        "the counter is an ordinary attribute",
        "The count is right as long as the process lives. Where is it in `state_dict()`?",
        _BUFFERS,
    ),
    _misconception(
        CountAsParameter,
        "count_as_a_parameter",
        "parameters()",
        "the counter is an nn.Parameter that needs no gradient",
        "Who else reads `parameters()`: what would an optimizer, or a count of the weights, make of a counter?",
        _BUFFERS,
    ),
    _misconception(
        CountAsFloat,
        "count_as_a_float",
        "dtypes in state_dict()",
        "the counter is a floating tensor",
        "After `.half()`, what is the largest number that this counter can count to, one by one?",
        "chapter 3, «What `.to()` converts»",
    ),
    _misconception(
        CountAsNumber,
        "count_as_a_python_number",
        "buffers()",
        "the counter is a Python number",
        "Load the layer's file into a fresh layer. What does the fresh one count from, and where would the old count "
        "have to stand?",
        _BUFFERS,
    ),
    _misconception(
        CountInZerosOfOne,
        "count_in_a_row_of_one",
        "buffers()",
        "the counter is a floating tensor with one axis",
        "Compare `torch.zeros(1)` with `torch.tensor(0)`: how many axes has each, and which dtype?",
        "the card of this exercise",
    ),
    _misconception(
        CountAlways,
        "count_in_eval_too",
        "running_count after eval",
        "every call is counted, whatever the mode",
        "Is a prediction in eval mode a batch that the layer was trained on? Where does the layer know its mode from?",
        _TEMPLATE,
    ),
    _misconception(
        CountRebound,
        "count_bound_to_a_new_tensor",
        "a state_dict() taken before the steps follows the count",
        "the counter becomes a new tensor at every call",
        "Somebody took `state_dict()` before the training. Does their tensor still count, and who made a second one?",
        "chapter 3, «Updating a buffer»",
    ),
    _misconception(
        BiasPlainNone,
        "bias_is_a_plain_none",
        "a plain tensor assigned to the empty bias",
        "without a bias the attribute is just None",
        "Look at `list(layer._parameters)` of your layer without a bias. Is there a place that is kept for one?",
        _TEMPLATE,
    ),
    _misconception(
        BiasOfZeros,
        "bias_of_frozen_zeros",
        "parameters()",
        "without a bias the layer keeps one of zeros",
        "Print the keys of the `state_dict()` of your layer without a bias. What would a colleague conclude from them?",
        _TEMPLATE,
    ),
    _misconception(
        NormWithoutParameters,
        "norm_without_its_parameters",
        "children",
        "the normalisation is a function call, and nothing of it is trained",
        "How many numbers does an `nn.LayerNorm(5)` train, and where are they in your layer?",
        _TEMPLATE,
    ),
    _misconception(
        BiasAfterNorm,
        "bias_after_the_norm",
        "output of training step 1",
        "the bias is added to what was normalised",
        "Read the first line of the specification once more: what goes into the norm?",
        "the card of this exercise",
    ),
    _misconception(
        WeightAsItMultiplies,
        "weight_stored_as_it_multiplies",
        "parameters()",
        "the weight is stored as (in, out)",
        "Which axis of `nn.Linear(3, 5).weight` is the long one, and what would load into a layer like yours?",
        "chapter 2, «The linear layer»",
    ),
    _misconception(
        WeightAsLinearStarts,
        "weight_started_as_linear_does",
        "spread of a large weight at the start, times √in",
        "the weight starts uniform, as in nn.Linear",
        "`nn.Linear` draws evenly between -1/√in and 1/√in. Is the standard deviation of such numbers their largest "
        "value?",
        "chapter 2, «Where the first numbers come from»",
    ),
    _misconception(
        WeightUnscaled,
        "weight_without_a_scale",
        "spread of a large weight at the start, times √in",
        "the weight starts with standard deviation 1",
        "A row of 100 numbers of size 1 meets your weight: how large is the sum before the norm, and what if the norm "
        "is taken out one day?",
        "the card of this exercise",
    ),
)

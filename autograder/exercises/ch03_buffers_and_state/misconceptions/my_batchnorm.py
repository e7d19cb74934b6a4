"""Wrong batch normalisations. Each changes one decision of a layer that is otherwise as torch's."""

from __future__ import annotations

import torch
from torch import nn

from autograder.exercise import Misconception


class _Layer(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.make_statistics(num_features)

    def make_statistics(self, num_features: int) -> None:
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def axes(self, x: torch.Tensor) -> list[int]:
        return [axis for axis in range(x.dim()) if axis != 1]

    def variance_for_output(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(self.axes(x), unbiased=False)

    def variance_for_running(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(self.axes(x), unbiased=True)

    def uses_batch(self) -> bool:
        return self.training

    def updates(self) -> bool:
        return self.training

    def count(self) -> None:
        self.num_batches_tracked += 1

    def factor(self) -> float:
        return 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum

    def move(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        self.running_mean.lerp_(mean.detach(), self.factor())
        self.running_var.lerp_(var.detach(), self.factor())

    def scale(self, var: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(var + self.eps)

    def refuse_single(self, x: torch.Tensor) -> None:
        if self.training and x.numel() // x.shape[1] < 2:
            raise ValueError("one value per channel has no variance")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.refuse_single(x)
        if self.updates():
            with torch.no_grad():
                self.count()
            self.move(x.mean(self.axes(x)), self.variance_for_running(x))
        if self.uses_batch():
            mean, var = x.mean(self.axes(x)), self.variance_for_output(x)
        else:
            mean, var = self.running_mean, self.running_var
        shape = [1, -1] + [1] * (x.dim() - 2)
        normal = (x - mean.view(shape)) / self.scale(var).view(shape)
        return normal * self.weight.view(shape) + self.bias.view(shape)


class BiasedRunningVariance(_Layer):
    def variance_for_running(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(self.axes(x), unbiased=False)


class UnbiasedNormalisation(_Layer):
    def variance_for_output(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(self.axes(x), unbiased=True)


class MomentumAsDecay(_Layer):
    def factor(self) -> float:
        return super().factor() if self.momentum is None else 1.0 - self.momentum


class BatchStatisticsInEval(_Layer):
    def uses_batch(self) -> bool:
        return True


class RunningStatisticsInTraining(_Layer):
    def uses_batch(self) -> bool:
        return False


class UpdatesInEval(_Layer):
    def updates(self) -> bool:
        return True

    def variance_for_running(self, x: torch.Tensor) -> torch.Tensor:
        single = x.numel() // x.shape[1] < 2
        return x.var(self.axes(x), unbiased=not single)


class PlainTensors(_Layer):
    def make_statistics(self, num_features: int) -> None:
        self.running_mean = torch.zeros(num_features)
        self.running_var = torch.ones(num_features)
        self.num_batches_tracked = torch.tensor(0)


class FrozenParameters(_Layer):
    def make_statistics(self, num_features: int) -> None:
        self.running_mean = nn.Parameter(torch.zeros(num_features), requires_grad=False)
        self.running_var = nn.Parameter(torch.ones(num_features), requires_grad=False)
        self.register_buffer("num_batches_tracked", torch.tensor(0))


class GraphInBuffers(_Layer):
    def move(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        self.running_mean = (1 - self.factor()) * self.running_mean + self.factor() * mean
        self.running_var = (1 - self.factor()) * self.running_var + self.factor() * var


class ReboundBuffers(_Layer):
    def move(self, mean: torch.Tensor, var: torch.Tensor) -> None:
        self.running_mean = (1 - self.factor()) * self.running_mean + self.factor() * mean.detach()
        self.running_var = (1 - self.factor()) * self.running_var + self.factor() * var.detach()


class NoCounter(_Layer):
    def count(self) -> None:
        pass

    def factor(self) -> float:
        return 0.1 if self.momentum is None else self.momentum


class FirstAxisOnly(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 2:
            return super().forward(x)
        # The statistics of the first time step only have shape (C,), which is why this one gets through.
        if self.training:
            super().forward(x[:, :, 0])
            mean, var = x.mean(0), x.var(0, unbiased=False)
        else:
            mean, var = self.running_mean[:, None], self.running_var[:, None]
        return (x - mean) / self.scale(var) * self.weight[:, None] + self.bias[:, None]


class EpsilonOutsideTheRoot(_Layer):
    def scale(self, var: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(var) + self.eps


class MomentumNoneIgnored(_Layer):
    def factor(self) -> float:
        return 0.1 if self.momentum is None else self.momentum


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "biased_running_variance",
        BiasedRunningVariance,
        "running_var after step 1",
        "one variance, the biased one, for the output and for the running average",
        "How much of the batch's variance reaches torch's running_var, and how much reaches yours? Which two variances "
        "of the same numbers differ by exactly that factor?",
        "the running_var part of nn.BatchNorm1d's documentation, and `x.var`'s `correction`",
    ),
    _misconception(
        "unbiased_normalisation",
        UnbiasedNormalisation,
        "output of training step 1",
        "the unbiased variance divides the batch",
        "What is the biased variance of one column of your training output, and what would it have to be?",
        "the first sentence on variance in nn.BatchNorm1d's documentation",
    ),
    _misconception(
        "momentum_as_decay",
        MomentumAsDecay,
        "running_mean after step 1",
        "momentum taken as the weight of the old value",
        "After one batch with mean 10, starting from 0 with momentum=0.1: what is running_mean in torch, and in yours?",
        "the box «Two words that mislead» in this chapter",
    ),
    _misconception(
        "batch_statistics_in_eval",
        BatchStatisticsInEval,
        "output in eval mode",
        "eval mode still normalises with the batch",
        "In eval mode, should the output of one row depend on which other rows are in the batch?",
        "the section on train() and eval() in this chapter",
    ),
    _misconception(
        "running_statistics_in_training",
        RunningStatisticsInTraining,
        "output of training step 1",
        "training normalises with the running statistics",
        "What should the mean of each column of the output be right after a training step?",
        "the source of `_BatchNorm.forward`: when does it hand over the running buffers?",
    ),
    _misconception(
        "updates_in_eval",
        UpdatesInEval,
        "running_mean after eval",
        "the running statistics also move in eval mode",
        "Call the layer twice in eval mode with the same rows. Should the second answer differ from the first?",
        "the source of `_BatchNorm.forward`: what guards the counter?",
    ),
    _misconception(
        "plain_tensors",
        PlainTensors,
        "buffers()",
        "the statistics are plain attributes",
        "Print `list(layer.state_dict())`. What would a colleague who loads that file be missing?",
        "the section on three homes for a tensor in this chapter",
    ),
    _misconception(
        "frozen_parameters",
        FrozenParameters,
        "parameters()",
        "the statistics are parameters with requires_grad=False",
        "What will `sum(p.numel() for p in layer.parameters())` say, and who else walks over parameters()?",
        "the section on three homes for a tensor in this chapter",
    ),
    _misconception(
        "graph_in_buffers",
        GraphInBuffers,
        "buffers outside the graph",
        "the running statistics drag the autograd graph along",
        "After one training step, what is `layer.running_mean.grad_fn`? How long does that chain get in a day?",
        "the section on updating a buffer in this chapter",
    ),
    _misconception(
        "rebound_buffers",
        ReboundBuffers,
        "a state_dict() taken before the steps follows them",
        "each update makes a new tensor instead of changing the registered one",
        "Is `layer.running_mean` the same object before and after a step? Who else may still hold the old one?",
        "the section on updating a buffer in this chapter",
    ),
    _misconception(
        "no_counter",
        NoCounter,
        "num_batches_tracked after step 1",
        "num_batches_tracked never moves",
        "Which value of momentum makes torch read num_batches_tracked, and what would it read in yours?",
        "the source of `_BatchNorm.forward`",
    ),
    _misconception(
        "momentum_none_ignored",
        MomentumNoneIgnored,
        "running_mean after step 2",
        "momentum=None treated as the default",
        "With momentum=None, how much should the very first batch weigh in the average? And the third?",
        "the momentum entry of nn.BatchNorm1d's documentation",
    ),
    _misconception(
        "first_axis_only",
        FirstAxisOnly,
        "output of training step 1",
        "a length axis gets statistics of its own",
        "For an input of shape (4, 3, 5), how many numbers go into the mean of one channel?",
        "the shape section of nn.BatchNorm1d's documentation",
    ),
    _misconception(
        "epsilon_outside_the_root",
        EpsilonOutsideTheRoot,
        "output of training step 1",
        "eps added to the standard deviation instead of the variance",
        "For a column whose variance is 0, by what does torch divide? And your layer?",
        "the formula in nn.BatchNorm1d's documentation",
    ),
)

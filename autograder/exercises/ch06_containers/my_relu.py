"""MyReLU against ``nn.ReLU``: four one-liners come to mind, and each fails at one point of the number line."""

from __future__ import annotations

from torch import nn

from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._activation import COMMON, MAY_CHANGE, PREREQUISITES, WEIGHTS, cases, observe

card = Card(
    goal="Write ReLU as a module that agrees with torch's at the ends of the number line, at zero, and at nan.",
    may_change=MAY_CHANGE,
    specification=(
        "positive numbers pass, negative ones become 0",
        *COMMON,
        "at exactly 0 the gradient is 0, as torch defines it",
        "compared with `nn.ReLU`; neither it nor `torch.relu`, `F.relu` and their relatives may do the work",
    ),
    minutes=10,
    difficulty=2,
    importance=3,
    prerequisites=PREREQUISITES,
)

hints = Hints(
    question=(
        "Take the five inputs -inf, -2, 0, 3 and nan, and go through your expression with each of them, by hand. "
        "Is minus infinity times zero really zero? Which way does a comparison with nan go? And what does autograd "
        "pass back at exactly 0?"
    ),
    template=(
        "def forward(self, x):\n"
        "    silent = ...              # a mask: which values become 0? Mind what nan answers to your comparison\n"
        "    return ...                # choose between two values by the mask; multiplying is not choosing"
    ),
)

exercise = Exercise(
    name="my_relu",
    chapter="ch06_containers",
    parts=("MyReLU",),
    kind="class",
    calls=(("MyReLU", (), {}),),
    points=2,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.ReLU,),
    weights=WEIGHTS,
    forbidden_classes=(nn.ReLU, nn.ReLU6, nn.Threshold, nn.LeakyReLU, nn.Hardtanh),
    forbidden=(
        "torch.relu",
        "torch.nn.functional.relu",
        "torch.nn.functional.threshold",
        "aten.relu",
        "aten.relu_",
        "aten.threshold",
        "aten.leaky_relu",
        "aten.rrelu_with_noise",
        "aten.prelu",
        "aten._prelu_kernel",
        "aten.elu",
        "aten.hardtanh",
    ),
)

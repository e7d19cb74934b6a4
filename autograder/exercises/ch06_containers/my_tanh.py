"""MyTanh against ``nn.Tanh``: infinity over infinity at the ends, and a slope of 1 that is easily lost at zero."""

from __future__ import annotations

from torch import nn

from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._activation import COMMON, MAY_CHANGE, PREREQUISITES, WEIGHTS, cases, observe

card = Card(
    goal="Write tanh so that it is -1 and 1 at the ends, with a gradient of 1 at zero and of 0 far out.",
    may_change=MAY_CHANGE,
    specification=(
        "every x becomes (exp(x) - exp(-x)) / (exp(x) + exp(-x)), a number from -1 to 1",
        *COMMON,
        "at exactly 0 the gradient is 1",
        "compared with `nn.Tanh`; neither it nor `torch.tanh` may do the work, every other function of torch is yours, "
        "`MySigmoid` included",
    ),
    minutes=10,
    difficulty=3,
    importance=3,
    prerequisites=PREREQUISITES,
)

hints = Hints(
    question=(
        "The sigmoid runs from 0 to 1 and tanh from -1 to 1: the one is the other, stretched. By which factor in "
        "height, by which in width? Check your guess by the slopes at 0, which are 0.25 and 1. And if you would "
        "rather start from the formula: at which x does exp(2x) leave float32?"
    ),
    template=(
        "def forward(self, x):\n"
        "    safe = ...                # x, kept where exp(2x) is finite and tanh is already 1\n"
        "    grown = ...               # exp(2x): divide the formula by exp(-x), above and below\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="my_tanh",
    chapter="ch06_containers",
    parts=("MyTanh",),
    kind="class",
    calls=(("MyTanh", (), {}),),
    points=2,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Tanh,),
    weights={**WEIGHTS, "output at ±100 and beyond": 2.0},
    forbidden_classes=(nn.Tanh, nn.Tanhshrink),
    forbidden=("torch.tanh", "torch.nn.functional.tanh", "aten.tanh", "aten.tanh_", "aten.mish"),
)

"""MySigmoid against ``nn.Sigmoid``: the textbook formula is right in the middle and breaks where exp overflows."""

from __future__ import annotations

from torch import nn

from autograder.exercise import Card, Exercise, Hints
from autograder.exercises.ch06_containers._activation import COMMON, MAY_CHANGE, PREREQUISITES, WEIGHTS, cases, observe

card = Card(
    goal="Write the sigmoid so that neither its value nor its gradient breaks where exp overflows.",
    may_change=MAY_CHANGE,
    specification=(
        "every x becomes 1 / (1 + exp(-x)), a number from 0 to 1",
        *COMMON,
        "at exactly 0 the gradient is 0.25",
        "compared with `nn.Sigmoid`; neither it nor `torch.sigmoid`, `F.logsigmoid` or `F.silu` may do the work, "
        "every other function of torch is yours",
    ),
    minutes=20,
    difficulty=3,
    importance=3,
    prerequisites=PREREQUISITES,
)

hints = Hints(
    question=(
        "Put x = -100 into the textbook formula in float32. What is exp(100), what is 1 divided by it, and what does "
        "the chain rule multiply on the way back? For which sign of x is exp of it harmless? And what is the "
        "derivative of |x| at 0?"
    ),
    template=(
        "def forward(self, x):\n"
        "    # One of several roads: never let exp see a number that is too large.\n"
        "    safe = ...                # x, but kept inside a range in which exp stays finite, in float32 too\n"
        "    return ...                # how much does the result differ from 0 or 1 outside that range?"
    ),
)

exercise = Exercise(
    name="my_sigmoid",
    chapter="ch06_containers",
    parts=("MySigmoid",),
    kind="class",
    calls=(("MySigmoid", (), {}),),
    points=2,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Sigmoid,),
    weights={**WEIGHTS, "gradient at ±100 and beyond": 2.0},
    forbidden_classes=(nn.Sigmoid, nn.LogSigmoid, nn.SiLU),
    forbidden=(
        "torch.sigmoid",
        "torch.nn.functional.sigmoid",
        "torch.special.expit",
        "aten.sigmoid",
        "aten.sigmoid_",
        "aten.special_expit",
        "aten.log_sigmoid_forward",
        "aten.silu",
        "aten.glu",
    ),
)

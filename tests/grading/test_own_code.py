"""Whether an answer is the student's own, read from its source: what is found, and what must not be."""

from __future__ import annotations

import pytest

from autograder.grading.own_code import handed_over
from autograder.registry import exercise_names, load_exercise
from tests.grading.answers import BIASED_BATCHNORM, RIGHT_BATCHNORM, RIGHT_CHECKPOINT, RIGHT_DROPOUT

IMPORTS = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
WRAPPED = """
class MyBatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        {init}
    def forward(self, x):
        return {forward}
"""
FOUND = {
    "an alias": "MyBatchNorm = nn.BatchNorm1d",
    "an alias of an alias": "B = nn.BatchNorm1d\nMyBatchNorm = B",
    "an import under the name": "from torch.nn import BatchNorm1d as MyBatchNorm",
    "everything imported": "from torch.nn import *\nMyBatchNorm = BatchNorm1d",
    "a subclass": "class MyBatchNorm(nn.BatchNorm1d):\n    pass",
    "a subclass of a subclass": "class Mine(nn.BatchNorm2d): pass\nclass MyBatchNorm(Mine): pass",
    "a subclass in one line": "MyBatchNorm = type('MyBatchNorm', (nn.BatchNorm1d,), {})",
    "a tuple": "MyBatchNorm, other = nn.BatchNorm1d, 1",
    "in a branch": "if True:\n    MyBatchNorm = nn.BatchNorm1d",
    "a child module": WRAPPED.format(init="self.inner = nn.BatchNorm1d(num_features)", forward="self.inner(x)"),
    "a call": WRAPPED.format(init="pass", forward="F.batch_norm(x, None, None, training=True)"),
    "a call by its long name": WRAPPED.format(init="pass", forward="torch.nn.functional.batch_norm(x, None, None)"),
    "the function below": WRAPPED.format(init="pass", forward="torch.batch_norm(x)"),
    "an operator": WRAPPED.format(init="pass", forward="torch.ops.aten.native_batch_norm.default(x)"),
    "a name put together": WRAPPED.format(init="pass", forward="getattr(F, 'batch_norm')(x)"),
    "a name of two texts": "MyBatchNorm = getattr(nn, 'Batch' + 'Norm1d')",
    "a name in a name": "which = f\"Batch{'Norm'}1d\"\nMyBatchNorm = getattr(nn, which)",
    "a name that is joined": "MyBatchNorm = vars(nn)[''.join(['Batch', 'Norm1d'])]",
    "a module's dictionary": "MyBatchNorm = nn.__dict__['BatchNorm1d']",
    "an imported module": "from importlib import import_module\nMyBatchNorm = import_module('torch.nn').BatchNorm1d",
    "a loaded module": "import sys\nMyBatchNorm = sys.modules['torch.nn'].BatchNorm1d",
    "a built-in import": "MyBatchNorm = __import__('torch').nn.BatchNorm1d",
    "the operator below": WRAPPED.format(init="pass", forward="torch.ops.aten.batch_norm(x)"),
    "the reference": "from autograder import registry\n"
    "MyBatchNorm = registry.load_exercise('my_batchnorm').reference[0]",
    "the switch of the watching": WRAPPED.format(
        init="pass", forward="torch.utils._python_dispatch._disable_current_modes()"
    ),
    "another thread": WRAPPED.format(init="pass", forward="threading.Thread(target=print)").replace(
        "class", "import threading\nclass", 1
    ),
    "a helper": "def helper(x):\n    return F.batch_norm(x, None, None)\n"
    + WRAPPED.format(init="pass", forward="helper(x)"),
    "a helper of a helper": "def one(x):\n    return F.batch_norm(x, None, None)\ntwo = lambda x: one(x)\n"
    + WRAPPED.format(init="self.two = two", forward="self.two(x)"),
    "a default argument": WRAPPED.replace("forward(self, x)", "forward(self, x, f=F.batch_norm)").format(
        init="pass", forward="f(x)"
    ),
    "an import inside": WRAPPED.format(
        init="import torch.nn.functional as G\n        self.f = G.batch_norm", forward="self.f(x)"
    ),
    "beside a magic": "%matplotlib inline\n!ls\nMyBatchNorm = nn.BatchNorm1d",
}
LEFT_ALONE = {
    "a right answer": RIGHT_BATCHNORM,
    "a wrong answer": BIASED_BATCHNORM,
    "an own test beside it": RIGHT_BATCHNORM + "\nreference = nn.BatchNorm1d(3)\nprint(F.batch_norm)",
    "an alias that is replaced": "MyBatchNorm = nn.BatchNorm1d\n" + RIGHT_BATCHNORM,
    "isinstance": RIGHT_BATCHNORM + "\n    def other(self, m):\n        return isinstance(m, nn.BatchNorm1d)",
    "an annotation": RIGHT_BATCHNORM + "\n    def other(self, m: nn.BatchNorm1d) -> nn.BatchNorm1d:\n        return m",
    "a local name": RIGHT_BATCHNORM + "\n    def other(self, F):\n        return F.batch_norm",
    "a text": RIGHT_BATCHNORM + "\n    note = 'nn.BatchNorm1d, F.batch_norm'",
    "not there": "",
    "itself": "MyBatchNorm = MyBatchNorm",
    "a circle": "A = B\nB = A\nMyBatchNorm = A",
    "not Python": "class MyBatchNorm(nn.BatchNorm1d:",
    "a tower": "MyBatchNorm = " + "(" * 500 + ")" * 500,
    "a long chain": "MyBatchNorm = " + "+".join("x" for _ in range(5000)),
}


@pytest.mark.parametrize("source", FOUND.values(), ids=FOUND)
def test_work_handed_to_torch_is_found(source: str) -> None:
    said = handed_over(load_exercise("my_batchnorm"), [IMPORTS, source])
    assert said is not None and said.endswith("my_batchnorm asks for your own code.")


@pytest.mark.parametrize("source", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_a_students_own_work_is_left_alone(source: str) -> None:
    assert handed_over(load_exercise("my_batchnorm"), [IMPORTS, source]) is None


def test_the_sentence_names_what_was_used() -> None:
    exercise = load_exercise("my_batchnorm")
    assert "MyBatchNorm is torch's own BatchNorm1d" in handed_over(exercise, [IMPORTS, FOUND["an alias"]])
    assert "inherits from torch's BatchNorm1d" in handed_over(exercise, [IMPORTS, FOUND["a subclass"]])
    assert "hands its work to torch.nn.functional.batch_norm" in handed_over(exercise, [IMPORTS, FOUND["a call"]])


@pytest.mark.parametrize("name", exercise_names())
def test_the_other_exercises_right_answers_are_left_alone(name: str) -> None:
    answers = {"my_dropout": RIGHT_DROPOUT, "save_and_resume": RIGHT_CHECKPOINT, "my_batchnorm": RIGHT_BATCHNORM}
    if name in answers:
        assert handed_over(load_exercise(name), [IMPORTS, answers[name]]) is None

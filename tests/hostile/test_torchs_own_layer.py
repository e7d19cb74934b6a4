"""Answers that let torch do the work: by another name, another way of calling, or only while nobody looks."""

from __future__ import annotations

from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}
NOT_THEIRS = "asks for your own code"

_LAYER = """
class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p")
        self.p = p
{more}
    def forward(self, x):
        return {forward}
"""
# Names that no reading of the source puts together.
_HIDDEN_NAME = "bytes([68, 114, 111, 112, 111, 117, 116]).decode()"
_HIDDEN_FUNCTION = "bytes([100, 114, 111, 112, 111, 117, 116]).decode()"


def _dropout(name: str, why: str, source: str, says: str = NOT_THEIRS) -> Case:
    return Case(name, why, scored(my_dropout=0), {"my_dropout": source}, says=says)


def _batchnorm(name: str, why: str, source: str) -> Case:
    return Case(name, why, scored(my_batchnorm=0), {"my_batchnorm": source}, says=NOT_THEIRS)


def _forward(name: str, why: str, forward: str, more: str = "", before: str = "") -> Case:
    return _dropout(name, why, before + _LAYER.format(forward=forward, more=more))


CASES = [
    _dropout("an_alias", "It is torch's class.", "MyDropout = nn.Dropout"),
    _dropout("a_long_name", "It is torch's class.", "MyDropout = torch.nn.modules.dropout.Dropout"),
    _dropout("a_subclass", "It inherits all that was asked for.", "class MyDropout(nn.Dropout):\n    pass"),
    _dropout(
        "a_relative",
        "Another dropout of torch's does the same work.",
        "class MyDropout(nn.FeatureAlphaDropout):\n    forward = nn.Dropout.forward",
    ),
    _dropout("made_by_type", "It inherits all the same.", "MyDropout = type('MyDropout', (nn.Dropout,), {})"),
    _dropout(
        "name_put_together",
        "A name put together from texts is read like any other.",
        "MyDropout = getattr(nn, 'Drop' + 'out')",
    ),
    _dropout("name_hidden", "What it is shows when it is there.", f"MyDropout = getattr(nn, {_HIDDEN_NAME})"),
    _dropout(
        "subclass_of_a_hidden_name",
        "What it inherits from shows when it is there.",
        f"class MyDropout(getattr(nn, {_HIDDEN_NAME})):\n    pass",
    ),
    _dropout(
        "imported_late",
        "It is torch's class.",
        "import importlib\nMyDropout = importlib.import_module('torch.nn').Dropout",
    ),
    _dropout(
        "from_the_loaded_modules", "It is torch's class.", "import sys\nMyDropout = sys.modules['torch.nn'].Dropout"
    ),
    _dropout(
        "copied_dictionary",
        "The methods are torch's, whatever the class is called.",
        "MyDropout = type('MyDropout', (nn.modules.dropout._DropoutNd.__mro__[1],),\n"
        "    {**vars(nn.modules.dropout._DropoutNd), **vars(nn.Dropout)})",
    ),
    _dropout(
        "copied_source",
        "Torch's source, run again, calls torch's function.",
        "import inspect\n"
        "place = dict(vars(nn.modules.dropout))\n"
        "exec(inspect.getsource(nn.modules.dropout._DropoutNd) + inspect.getsource(nn.Dropout), place)\n"
        "MyDropout = place['Dropout']",
    ),
    _batchnorm(
        "copied_source_of_batchnorm",
        "Torch's source, run again, calls torch's function.",
        "import inspect\n"
        "place = dict(vars(nn.modules.batchnorm))\n"
        "for each in ('_NormBase', '_BatchNorm', 'BatchNorm1d'):\n"
        "    exec(inspect.getsource(place[each]), place)\n"
        "MyBatchNorm = place['BatchNorm1d']",
    ),
    _dropout(
        "another_object_in_its_place",
        "A constructor that returns torch's layer is torch's layer at work.",
        f"class MyDropout(nn.Module):\n    def __new__(cls, p=0.5):\n        return getattr(nn, {_HIDDEN_NAME})(p)",
    ),
    _forward("a_child", "The child does the work.", "self.inner(x)", "        self.inner = nn.Dropout(p)"),
    _forward(
        "a_hidden_child",
        "The child does the work, and is seen doing it.",
        "self.inner(x)",
        f"        self.inner = getattr(nn, {_HIDDEN_NAME})(p)",
    ),
    _forward("a_function", "The function does the work.", "nn.functional.dropout(x, self.p, self.training)"),
    _forward("a_function_of_torch", "The function does the work.", "torch.dropout(x, self.p, self.training)"),
    _forward("an_operator", "The operator does the work.", "torch.ops.aten.dropout(x, self.p, self.training)"),
    _forward(
        "a_hidden_operator",
        "The operator is seen doing it.",
        "self.work(x, self.p, self.training)",
        f"        self.work = getattr(torch.ops.aten, {_HIDDEN_FUNCTION})",
    ),
    _forward(
        "a_binding",
        "Below the functions lie their bindings, which are watched as well.",
        "self.work(x, self.p, self.training)",
        f"        self.work = getattr(torch._C._VariableFunctions, {_HIDDEN_FUNCTION})",
    ),
    _forward(
        "what_is_wrapped",
        "A function's inside is torch's too.",
        "getattr(nn.functional.dropout, '__wrapped__', nn.functional.dropout)(x, self.p, self.training)",
    ),
    _forward(
        "lambdas_around_it",
        "Three helpers away it is still torch's.",
        "three(x, self.p, self.training)",
        before="one = lambda *a: nn.functional.dropout(*a)\ntwo = lambda *a: one(*a)\nthree = lambda *a: two(*a)\n",
    ),
    _forward(
        "map_it",
        "Below torch.func the same operators run.",
        "torch.func.vmap(lambda row: self.work(row, self.p, self.training), randomness='different')(x)",
        f"        self.work = getattr(nn.functional, {_HIDDEN_FUNCTION})",
    ),
    _forward(
        "compiled_by_torch",
        "What torch compiles is not the student's work.",
        "self.inner(x)",
        f"        self.inner = torch.jit.script(getattr(nn, {_HIDDEN_NAME})(p))",
    ),
    _forward(
        "in_another_thread",
        "Another thread is not watched, and no layer needs one.",
        "self.out(x)",
        f"        self.inner = getattr(nn, {_HIDDEN_NAME})(p)\n"
        "    def out(self, x):\n"
        "        found = []\n"
        "        self.inner.train(self.training)\n"
        "        thread = threading.Thread(target=lambda: found.append(self.inner(x)))\n"
        "        thread.start(); thread.join()\n"
        "        return found[0]",
        before="import threading\n",
    ),
    _forward(
        "with_the_watching_switched_off",
        "Whoever switches the watching off has something to hide.",
        "self.out(x)",
        f"        self.inner = getattr(nn, {_HIDDEN_NAME})(p)\n"
        "    def out(self, x):\n"
        "        with torch.utils._python_dispatch._disable_current_modes():\n"
        "            return self.inner.train(self.training)(x)",
    ),
    _forward(
        "different_at_the_second_look",
        "There is one look, at every case.",
        "self.inner.train(self.training)(x) if len(seen) < 5 else x",
        f"        seen.append(1)\n        self.inner = getattr(nn, {_HIDDEN_NAME})(p)",
        before="seen = []\n",
    ),
    _forward(
        "different_after_the_first_case",
        "There is one look, at every case.",
        "x if len(seen) == 1 else self.inner.train(self.training)(x)",
        f"        seen.append(1)\n        self.inner = getattr(nn, {_HIDDEN_NAME})(p)",
        before="seen = []\n",
    ),
    _dropout(
        "a_metaclass_that_denies_it",
        "Whose child a class is, is asked of torch's class and not of the student's.",
        "class Denies(type):\n"
        "    def __subclasscheck__(cls, other): return False\n"
        "    def __instancecheck__(cls, other): return False\n"
        f"class MyDropout(getattr(nn, {_HIDDEN_NAME}), metaclass=Denies):\n    pass",
    ),
    _dropout(
        "a_tensor_that_hides_its_calls",
        "A subclass that overrides __torch_function__ is not asked.",
        "class Quiet(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, function, types, args=(), kwargs=None):\n"
        "        with torch._C.DisableTorchFunctionSubclass():\n"
        "            return function(*args, **(kwargs or {}))\n"
        + _LAYER.format(
            forward="self.work(x.as_subclass(Quiet), self.p, self.training)",
            more=f"        self.work = getattr(nn.functional, {_HIDDEN_FUNCTION})",
        ),
    ),
    _dropout(
        "the_names_of_torch_changed",
        "What torch's classes are called does not matter.",
        f"taken = getattr(nn, {_HIDDEN_NAME})\ntaken.__name__ = taken.__qualname__ = 'MyDropout'\nMyDropout = taken",
    ),
    _dropout(
        "torchs_function_renamed",
        "A call is known by what it does further down as well.",
        f"work = getattr(nn.functional, {_HIDDEN_FUNCTION})\nwork.__name__ = work.__qualname__ = 'mine'\n"
        + _LAYER.format(forward="work(x, self.p, self.training)", more=""),
    ),
    Case(
        "an_own_layer_beside_torchs",
        "To compare with torch in another cell, or in the same one, is good practice and costs nothing.",
        scored(),
        {"my_dropout": RIGHT_DROPOUT + "\n\ntheirs = nn.Dropout(0.5)\nprint(theirs(torch.ones(3)).shape)\n"},
    ),
    Case(
        "isinstance_of_torchs",
        "To name torch's layer is not to use it.",
        scored(),
        {
            "my_dropout": RIGHT_DROPOUT
            + "\n\n    def twin(self, other):\n        return isinstance(other, nn.Dropout)\n"
        },
    ),
]


class TestTorchsOwnLayer(Family):
    """Torch's work earns nothing; a student's own does, whatever stands beside it."""

"""route against a real assignment: where does this value go, under this name, in this module?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.snapshot import Raised

REGISTRIES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def cases(seed: int, device: str) -> list[Case]:
    """Five situations: a fresh name, a name of each home, a slot that is empty, odd names, and no __init__ yet."""
    draw = Draw(seed)
    chosen = []
    for kind in ("a fresh name", "a name that is taken", "an empty slot", "a name to refuse", "before __init__"):
        values = {"tensor": draw.normal(draw.integer(1, 4)), "number": draw.integer(2, 9), "kind": kind}
        chosen.append(Case(f"{kind}, {device}", seed + len(chosen), device, **values))
    return chosen


def _values(case: Case) -> dict[str, Any]:
    """Return what may stand on the right of an assignment, by the words that name it."""
    tensor = case.tensor
    values = {
        "a parameter": nn.Parameter(tensor.clone()),
        "a module": nn.Module(),
        "an nn.Buffer": nn.Buffer(tensor.clone()),
        "a plain tensor": tensor,
        "None": None,
        "a number": case.number,
    }
    if case.kind == "a fresh name":
        values["a frozen parameter"] = nn.Parameter(tensor.clone(), requires_grad=False)
        values["a tensor that requires a gradient"] = tensor.clone().requires_grad_(True)
        values["a list of modules"] = [nn.Module(), nn.Module()]
        values["a module class, without its parentheses,"] = nn.ReLU
    return values


def _module(case: Case) -> nn.Module:
    """Return a module with one name in each home, filled by hand: an assignment here would be taken for a student's."""
    module = nn.Module()
    empty = case.kind == "an empty slot"
    module._parameters["weight"] = None if empty else nn.Parameter(case.tensor.clone())
    module._buffers["mean"] = None if empty else case.tensor.clone()
    module._modules["child"] = None if empty else nn.Module()
    vars(module)["width"] = case.number
    return module


def observe(make: Callable[[nn.Module, str, Any], str], case: Case) -> Iterator[tuple]:
    """Ask for each value under each name; every answer is observed, a raised error by its type."""
    values = _values(case)
    module = _module(case)
    if case.kind == "a fresh name":
        names = {"anything": "a fresh name"}
    elif case.kind == "a name that is taken":
        names = {"weight": "a parameter's name", "mean": "a buffer's name", "child": "a child's name"}
        names["width"] = "a plain attribute's name"
    elif case.kind == "an empty slot":
        names = {
            "weight": "an empty parameter's name",
            "mean": "an empty buffer's name",
            "child": "an empty child's name",
        }
    elif case.kind == "a name to refuse":
        names = {"left.right": "a name with a dot", "forward": "a name that the class has", "": "an empty name"}
    else:
        module, names = nn.Module.__new__(nn.Module), {"anything": "a fresh name, before __init__"}
    before = _state(module)
    for name, words in names.items():
        for value_words, value in values.items():
            yield f"{value_words} under {words}", _answer(make, module, name, value)
    yield f"{case.kind}: the module is as it was", _state(module) == before


def _answer(make: Callable[[nn.Module, str, Any], str], module: nn.Module, name: str, value: Any) -> Any:
    # One wrong answer must not hide the others, so that an error is an answer too, here and now.
    try:
        return make(module, name, value)
    except NotImplementedError:
        raise
    except Exception as error:
        return Raised(type(error).__name__, tuple(base.__name__ for base in type(error).__mro__[1:-2]))


def _state(module: nn.Module) -> list:
    return [sorted(vars(module)), *(list(vars(module).get(name, ())) for name in REGISTRIES)]


def _by_assignment(module: nn.Module, name: str, value: Any) -> str:
    """Assign to a stand-in with copies of the registries, and look where the value lies."""
    trial = nn.Module.__new__(type(module))
    vars(trial).update(vars(module))
    for registry in REGISTRIES:
        if registry in vars(trial):
            vars(trial)[registry] = type(vars(trial)[registry])(vars(trial)[registry])
    setattr(trial, name, value)
    return next((home for home in REGISTRIES[:3] if name in vars(trial).get(home, ())), "__dict__")


card = Card(
    goal="Predict every assignment to a module, as a function, before you rebuild the module itself.",
    may_change="the body of `route`; helper functions are welcome, the signature stays",
    specification=(
        "`route(module, name, value)` says where `module.name = value` would put the value, and assigns nothing",
        'it returns one of `"_parameters"`, `"_buffers"`, `"_modules"` and `"__dict__"`',
        "where torch would raise, it raises an error of the same type: `TypeError` for a value out of place, "
        "`AttributeError` for a registration before `Module.__init__` has run, `KeyError` for a name that "
        "`register_parameter` or `register_buffer` refuses",
        "the names to refuse: an empty one, one with a dot, and one that the class itself has; for an `nn.Buffer` also "
        "one that a plain attribute has",
        "compared with real assignments; neither `setattr` nor a `register_…` method may be called for it",
    ),
    minutes=25,
    difficulty=3,
    importance=4,
    prerequisites=("the walk through Module.__setattr__", "isinstance", "vars(module)"),
)

hints = Hints(
    question=(
        "Write the branches of `Module.__setattr__` down the side of a sheet, in their order, each as the question it "
        "asks. Which of them ask about the value, which about the name, and which one needs both? Now take `None` "
        "under a child's name: at which question does it stop?"
    ),
    template=(
        "def route(module, name, value):\n"
        "    parameters = vars(module).get('_parameters')     # None before __init__\n"
        "    if isinstance(value, nn.Parameter):\n"
        "        ...                                          # two reasons to refuse\n"
        "        return '_parameters'\n"
        "    if parameters is not None and name in parameters:\n"
        "        ...                                          # which value is welcome here?\n"
        "        return '_parameters'\n"
        "    ...                                              # children: the same two questions\n"
        "    ...                                              # buffers: one question with `or`\n"
        "    return '__dict__'"
    ),
)

exercise = Exercise(
    name="route",
    chapter="ch01_module_anatomy",
    parts=("route",),
    kind="functions",
    calls=(("route", tuple(Placeholder(name) for name in ("module", "name", "value")), {}),),
    points=3,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_by_assignment,),
    weights={
        "a parameter under a fresh name": 3.0,
        "a module under a fresh name": 3.0,
        "a plain tensor under a fresh name": 3.0,
        "a list of modules under a fresh name": 3.0,
        "a plain tensor under a parameter's name": 3.0,
        "a plain tensor under a buffer's name": 3.0,
    },
    forbidden_code=tuple(
        f"torch.nn.modules.module.Module.{name}"
        for name in ("__setattr__", "register_parameter", "register_buffer", "add_module", "register_module")
    ),
    compared_with="real assignments",
)

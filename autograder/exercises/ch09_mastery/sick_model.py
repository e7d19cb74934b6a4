"""sick_model: name the faults of a model from outside, by hand for one patient, by program for every other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case
from autograder.clinic import EXAMPLE_TEXT, FAULTS, Patient, admit, build, faults_of, make_plan, own_plan
from autograder.exercise import Card, Exercise, Hints

OWN_FORM = "your id and a dict"
# Which of the faults, in an order from the seed, each patient has. Most have all of them, in one form or the other, so
# that an empty diagnosis earns little; the harmless oddities are in everybody.
_ALL = tuple(range(len(FAULTS)))
_WHO_HAS_WHAT = ((), (0, 1, 2), (3, 4, 5, 6), _ALL, _ALL, _ALL, _ALL)


def cases(seed: int, device: str) -> list[Case]:
    """The student's own patient; then a healthy one, two with a few faults, and four with all, in both modes."""
    dice = random.Random(seed)
    faults = dice.sample(sorted(FAULTS), len(FAULTS))
    chosen = [Case(f"the patient of your id, {device}", seed, device, plan=None)]
    for number, indices in enumerate(_WHO_HAS_WHAT):
        variants = {faults[index]: (number + index) % 2 for index in indices}
        plan = make_plan(dice.getrandbits(32), variants, "train" if number % 2 else "eval")
        name = f"patient {number}, {len(indices)} faults, {device}" if number else f"a healthy patient, {device}"
        chosen.append(Case(name, seed + number, device, plan=plan))
    return chosen


def observe(make: SimpleNamespace, case: Case) -> Iterator[tuple]:
    """Hear the diagnosis of the student's own patient, or ask for that of another one."""
    if case.plan is None:
        yield from _own_patient(make.my_diagnosis())
        return
    patient = build(case.plan)
    patient.model.to(case.device)
    patient.sample = patient.sample.to(case.device)
    before = _signature(patient)
    found = make.diagnose(patient)
    named = found if isinstance(found, Mapping) else {}
    yield "the diagnosis is a dict", type(found).__name__ if not isinstance(found, Mapping) else "dict"
    for fault in FAULTS:
        yield fault, _sorted(named.get(fault, []))
    yield "names that are no fault's", sorted(str(name) for name in named if name not in FAULTS)
    yield "the patient is left as it was", _signature(patient) == before


def _own_patient(said: Any) -> Iterator[tuple]:
    """Compare with what the text stands for. Only numbers are told: which faults they are is the exercise."""
    text, named = said if isinstance(said, (tuple, list)) and len(said) == 2 else (None, None)
    form = _form_of_own(said, text, named)
    yield "my_diagnosis() gives your id and a dict", form
    if form != OWN_FORM:
        return
    truth, found = _pairs(faults_of(own_plan(text))), _pairs(named)
    yield "your own patient: places that you missed", len(truth - found)
    yield "your own patient: places without that fault", len(found - truth)


def _form_of_own(said: Any, text: Any, named: Any) -> str:
    if isinstance(text, str) and isinstance(named, Mapping):
        if not text.strip() or text.strip() == EXAMPLE_TEXT:
            return "the notebook's example instead of your id"
        return OWN_FORM
    if isinstance(said, (tuple, list)):
        return f"a {type(said).__name__} of {', '.join(type(one).__name__ for one in said) or 'nothing'}"
    return "no value at all (None)" if said is None else f"a {type(said).__name__} alone"


def _pairs(named: Mapping) -> set[tuple[str, str]]:
    return {(str(fault), str(path)) for fault, paths in named.items() for path in _listed(paths)}


def _listed(paths: Any) -> list:
    return [paths] if isinstance(paths, str) else list(paths) if isinstance(paths, (list, tuple, set)) else []


def _sorted(paths: Any) -> Any:
    if isinstance(paths, (list, tuple, set, frozenset)):
        return sorted(str(path) for path in paths)
    return paths


def _signature(patient: Patient) -> list[Any]:
    model = patient.model
    parts = [
        [path, part.training, *(len(getattr(part, name)) for name in _HOOKS), *sorted(vars(part))]
        for path, part in model.named_modules()
    ]
    numbers = [[name, float(value.double().sum())] for name, value in model.state_dict().items()]
    asks = [[name, p.requires_grad, p.grad is None] for name, p in model.named_parameters(remove_duplicate=False)]
    return [parts, numbers, asks, [len(group["params"]) for group in patient.optimizer.param_groups]]


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


def reference_diagnose(patient: Patient) -> dict[str, list[str]]:
    """Return fault -> paths, from inspection alone."""
    model, letter = patient.model, patient.letter
    modules = dict(model.named_modules())
    registered = {id(part) for part in modules.values()}
    held = {id(p) for group in patient.optimizer.param_groups for p in group["params"]}
    names = dict(model.named_parameters(remove_duplicate=False))
    found: dict[str, list[str]] = {fault: [] for fault in FAULTS}
    for path, part in modules.items():
        for name, value in vars(part).items():
            hidden = [one for one in value if isinstance(one, nn.Module)] if isinstance(value, (list, tuple)) else []
            if any(id(one) not in registered for one in hidden):
                found["unregistered"].append(f"{path}.{name}".lstrip("."))
        if part._forward_hooks or part._forward_pre_hooks:
            found["leaked_hook"].append(path)
        if part.training != (letter["mode"] == "train"):
            found["wrong_mode"].append(path)
        if isinstance(part, nn.BatchNorm1d) and part.momentum == 0.0:
            found["frozen_buffer"].append(path)
        if getattr(part, "inplace", False) and part._backward_hooks:
            found["inplace_under_hook"].append(path)
    found["untied"] = [second for first, second in letter["tied"] if names[first] is not names[second]]
    found["not_optimized"] = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    return found


def _reference_own() -> tuple[str, dict[str, list[str]]]:
    return "a student", reference_diagnose(admit("a student"))


card = Card(
    goal="Find out what is wrong with a model that runs, by looking at it: once by hand, then with a program of yours.",
    may_change="the bodies of `my_diagnosis` and `diagnose`, and functions of your own beside them",
    specification=(
        "`my_diagnosis()` returns two things: your own student id, as a text, and the diagnosis of the patient that "
        "`admit(your id)` gives: three faults, each with its paths",
        "a diagnosis is a dict: name of a fault (the keys of `FAULTS`) to a list of dotted paths in any order; what is "
        "not there may be left out or be an empty list",
        "the paths: for `unregistered` the attribute that holds the list, for `untied` the pair's second name, for "
        "`not_optimized` the parameter's name, else the module's path; for `wrong_mode` every module that is in it",
        "`diagnose(patient)` returns the diagnosis of any patient: `patient.model`, `.optimizer`, `.sample` and "
        "`.letter`, which says what the owner wants",
        "no false alarm: every patient has oddities that are none of the seven faults",
        "the patient is left as it was: look, or operate on a copy",
    ),
    minutes=45,
    difficulty=4,
    importance=5,
    prerequisites=("named_modules() and vars(module)", "the registries of hooks", "param_groups", "id() and `is`"),
)

hints = Hints(
    question=(
        "Take one fault at a time, and a patient that has it. Where would its trace be written: in the attributes of a "
        "module, in one of its registries, in its flags, in the identity of two objects, or in a comparison between "
        "the model and its optimizer? And which healthy thing leaves almost the same trace?"
    ),
    template=(
        "def diagnose(patient):\n"
        "    found = {fault: [] for fault in FAULTS}\n"
        "    registered = {id(part) for part in ...}\n"
        "    held = {id(p) for group in ... for p in ...}\n"
        "    for path, part in patient.model.named_modules():\n"
        "        for name, value in vars(part).items():\n"
        "            ...                               # a list with a module that is not registered\n"
        "        if part._forward_hooks ...:           # there is a second registry\n"
        "            found['leaked_hook'].append(path)\n"
        "        if ...:                               # the flag, and what the letter says\n"
        "            ...\n"
        "        ...                                   # two more that one module shows\n"
        "    for first, second in patient.letter['tied']:\n"
        "        ...                                   # equal values are not enough\n"
        "    for name, parameter in ...:\n"
        "        ...                                   # does it ask for a gradient, and does anybody hold it?\n"
        "    return found"
    ),
)

exercise = Exercise(
    name="sick_model",
    chapter="ch09_mastery",
    parts=("my_diagnosis", "diagnose"),
    kind="functions",
    calls=(("my_diagnosis", (), {}), ("diagnose", (Placeholder("patient"),), {})),
    points=6,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference_own, reference_diagnose),
    weights={
        "the diagnosis is a dict": 0.25,
        "names that are no fault's": 0.25,
        "the patient is left as it was": 0.25,
        "my_diagnosis() gives your id and a dict": 0.25,
        "your own patient: places without that fault": 0.5,
    },
    written_in_steps=True,
    compared_with="the plan that each patient was built from",
)

"""inspect_model: a table of what a model holds and what went through it, from a call that leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_file

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import global_hooks_put_back
from autograder.exercises.ch07_model_inspector._models import BUILDERS, build
from autograder.observe import attempt

KEYS = ("path", "type", "own", "total", "buffers", "inputs", "outputs")
ROOT = "(the model)"
# What a model was made to show has an observation of its own, so that it weighs more than one case among six.
ABOUT = {
    ("inputs", "a residual stack"): "inputs of modules called twice",
    ("outputs", "a residual stack"): "outputs of modules called twice",
    ("own", "a residual stack"): "own with a frozen bias",
    ("total", "a residual stack"): "total with a frozen bias",
    ("own", "statistics and hooks"): "own beside buffers",
    ("total", "statistics and hooks"): "total beside buffers",
    ("own", "tied weights"): "own with a tied weight",
    ("total", "tied weights"): "total with a tied weight",
    ("buffers", "statistics and hooks"): "buffers of every kind",
    ("hooks", "statistics and hooks"): "changed hooks afterwards, where somebody has some",
    ("modes", "statistics and hooks"): "changed modes afterwards, where one norm is frozen",
    ("parameters and buffers", "statistics and hooks"): "changed statistics afterwards",
    ("inputs", "keywords and tuples"): "inputs passed by keyword",
    ("outputs", "keywords and tuples"): "outputs in tuples",
    ("inputs", "torch's encoder layer"): "inputs within torch's encoder layer",
    ("outputs", "torch's encoder layer"): "outputs within torch's encoder layer",
}


def cases(seed: int, device: str) -> list[Case]:
    """One case a model, with a width and a batch of its own."""
    draw = Draw(seed)
    chosen = []
    for number, kind in enumerate(BUILDERS):
        width, rows, length = draw.integer(3, 6), draw.integer(2, 4), draw.integer(5, 7)
        inputs = _inputs(draw, kind, width, rows, length)
        chosen.append(Case(f"{kind}, {device}", seed + number, device, kind=kind, width=width, inputs=inputs))
    return chosen


def _inputs(draw: Draw, kind: str, width: int, rows: int, length: int) -> list[torch.Tensor]:
    if kind == "tied weights":
        return [torch.randint(0, width + 5, (rows, length), generator=draw.generator)]
    if kind == "statistics and hooks":
        return [draw.normal(rows, 2, length, length + 1)]
    if kind == "two inputs and idle heads":
        return [draw.normal(rows, width), draw.normal(rows, 2)]
    if kind == "a forward that breaks":
        return [draw.normal(rows, width)]
    return [draw.normal(rows, length, 2 * width if kind == "torch's encoder layer" else width)]


def observe(make: Any, case: Case) -> Iterator[tuple]:
    """Inspect one model, then look at what the inspection left behind in it."""
    with global_hooks_put_back():
        yield from _observe(make, case)


def _observe(make: Any, case: Case) -> Iterator[tuple]:
    model = build(case.kind, case.width, case.seed, case.device)
    before = _surroundings(model)
    if case.kind == "a forward that breaks":
        yield "an error in forward", attempt(lambda: make(model, *case.inputs))
        for what, changed in _changes(before, model).items():
            yield f"changed {what} after an error", changed
        return
    rows = make(model, *case.inputs)
    yield "what is returned", _form(rows)
    if not _is_table(rows):
        return
    yield "paths, in order", [_path(row) for row in rows]
    for key in KEYS[1:]:
        name = ABOUT.get((key, case.kind), key)
        yield name, {_path(row): row.get(key, "no such key") for row in rows}
    for what, changed in _changes(before, model).items():
        yield ABOUT.get((what, case.kind), f"changed {what} afterwards"), changed


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, Mapping) for row in rows)


def _form(rows: Any) -> str:
    """Say in words what came back, so that another form than the one asked for is named and not printed."""
    if _is_table(rows):
        return f"a list of dicts with the keys {', '.join(sorted(map(str, rows[0])))}"
    if isinstance(rows, (list, tuple, Mapping)):
        inside = type(next(iter(rows))).__name__ if rows else "nothing"
        return f"a {type(rows).__name__} of {inside}"
    return "no value at all (None)" if rows is None else f"an object of type {type(rows).__name__}"


def _path(row: Mapping[str, Any]) -> str:
    path = row.get("path", "no path")
    return ROOT if path == "" else path


def _surroundings(model: nn.Module) -> dict[str, dict[str, Any]]:
    """Return what an inspection must not change, for each module by its path."""
    tables = ("_forward_hooks", "_forward_pre_hooks")
    hooks: dict[str, Any] = {
        path or ROOT: [len(getattr(module, table)) for table in tables] + ["forward" in vars(module)]
        for path, module in model.named_modules()
    }
    hooks["every module (a global hook)"] = [len(getattr(module_file, f"_global{table}")) for table in tables]
    modes = {path or ROOT: module.training for path, module in model.named_modules()}
    state = {name: value.detach().clone() for name, value in (*model.named_parameters(), *model.named_buffers())}
    return {"hooks": hooks, "modes": modes, "parameters and buffers": state}


def _changes(before: Mapping[str, Mapping[str, Any]], model: nn.Module) -> dict[str, list[str]]:
    after = _surroundings(model)
    return {what: [key for key in old if not _same(old[key], after[what].get(key))] for what, old in before.items()}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(one, other)
    return one == other


def _reference(model: nn.Module, *inputs: Any) -> list[dict[str, Any]]:
    named = dict(model.named_modules())
    calls: dict[str, list[tuple[list, list]]] = {path: [] for path in named}
    handles = [
        module.register_forward_hook(
            lambda _, args, kwargs, output, path=path: calls[path].append((_shapes([args, kwargs]), _shapes(output))),
            with_kwargs=True,
        )
        for path, module in named.items()
    ]
    modes = {module: module.training for module in named.values()}
    try:
        with torch.no_grad():
            model.eval()(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes.items():
            module.training = mode
    return [
        {
            "path": path,
            "type": type(module).__name__,
            "own": sum(p.numel() for p in module.parameters(recurse=False)),
            "total": sum(p.numel() for p in module.parameters()),
            "buffers": [name for name, _ in module.named_buffers(recurse=False)],
            "inputs": [shapes for shapes, _ in calls[path]],
            "outputs": [shapes for _, shapes in calls[path]],
        }
        for path, module in named.items()
    ]


def _shapes(value: Any) -> list[tuple[int, ...]]:
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape)]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [shape for item in value for shape in _shapes(item)] if isinstance(value, (list, tuple)) else []


card = Card(
    goal="Write the inspector you will keep: one row a module, with its numbers and every shape that went through it.",
    may_change="the body of `inspect_model`; helper functions are welcome, the signature stays",
    specification=(
        "calls the model once, in eval mode, and returns a list of dicts, one for each module that "
        "`named_modules()` lists, in its order, with the keys `path`, `type`, `own`, `total`, `buffers`, `inputs`, "
        "`outputs`",
        "`path` is the dotted path (`''` for the model itself), `type` the name of the class",
        "`own` is the number of values in the module's own parameters, `total` in all parameters from there down, "
        "frozen ones included; within one row each parameter counts once, so a tied weight is in two `own` and once "
        "in the model's `total`",
        "`buffers` is the list of the names of the module's own buffers, persistent or not; an empty slot is none",
        "`inputs` and `outputs` have one entry a call, in order; an entry is the list of the shapes of all tensors "
        "passed (by position, then by keyword) or returned, through tuples, lists and dicts; no call, no entry",
        "afterwards the model is as it was: its hooks and nobody else's are gone, every module has the mode it had, "
        "no parameter or buffer has changed; this holds after an error in `forward` too, which is passed on",
    ),
    minutes=40,
    difficulty=4,
    importance=5,
    prerequisites=("named_modules", "register_forward_hook and its options", "handles", "train() and eval()"),
)

hints = Hints(
    question=(
        "Which three questions about a module can be answered without calling it, and which two only while it is "
        "called? Where do you write down what a hook sees, so that a second call adds to it and a module without a "
        "call still has a row? And what has to happen when `forward` raises in the middle?"
    ),
    template=(
        "def shapes(value):\n"
        "    ...                              # a tensor, a tuple or list, a dict, anything else\n\n"
        "def inspect_model(model, *inputs):\n"
        "    rows = {}                        # one a module, before anything is called\n"
        "    handles, modes = [], {}\n"
        "    for path, module in ...:\n"
        "        rows[path] = ...\n"
        "        modes[...] = ...             # each module's own\n"
        "        handles.append(...)          # which option hands the keyword arguments over?\n"
        "    try:\n"
        "        ...\n"
        "    finally:\n"
        "        ...                          # two things to put back\n"
        "    return ..."
    ),
)

exercise = Exercise(
    name="inspect_model",
    chapter="ch07_model_inspector",
    parts=("inspect_model",),
    kind="functions",
    calls=(("inspect_model", (Placeholder("model"), Placeholder("inputs")), {}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "what is returned": 0.25,
        "types": 0.5,
        "paths, in order": 2.0,
        "total with a frozen bias": 1.5,
        "total beside buffers": 1.5,
        "total with a tied weight": 2.0,
        "changed parameters and buffers*": 0.25,
        "outputs of modules called twice": 2.0,
        "inputs passed by keyword": 2.0,
        "outputs in tuples": 2.0,
        "outputs within torch's encoder layer": 2.0,
        "buffers of every kind": 1.5,
        "changed statistics afterwards": 2.0,
        "changed modes afterwards, where one norm is frozen": 2.0,
        "changed hooks after an error": 2.0,
        "an error in forward": 1.5,
    },
    compared_with="what torch's own walks and hooks report",
)

"""MiniModule against ``nn.Module``: registration, lookup, deletion, the walk over the tree, modes and state."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.observe import attempt

REGISTRIES = ("_parameters", "_buffers", "_modules")


def cases(seed: int, device: str) -> list[Case]:
    """Eight situations, one a power of a module, each small enough to be followed by hand."""
    draw = Draw(seed)
    chosen = []
    for name in _PROBES:
        size = draw.integer(2, 4)
        tensors = [draw.normal(size, mean=draw.number(-2, 2)) for _ in range(6)]
        number = draw.integer(3, 9)
        values = {"size": size, "tensors": tensors, "number": number, "kind": name}
        chosen.append(Case(f"{name}, {device}", seed + len(chosen), device, **values))
    return chosen


def observe(make: type, case: Case) -> Iterator[tuple]:
    """Drive the class, and subclasses that the probe makes of it, through one situation."""
    yield from _PROBES[case.kind](make, case)


def _registries(module: Any) -> dict[str, list[str]]:
    return {name: list(getattr(module, name, ())) for name in REGISTRIES}


def _homes(module: Any, name: str) -> list[str]:
    """Return every place that holds ``name``; more than one means that a stale value is left somewhere."""
    homes = [registry for registry in REGISTRIES if name in getattr(module, registry, ())]
    return homes + ["__dict__"] * (name in vars(module))


def _paths(pairs: Any) -> list[str]:
    return [path for path, _ in pairs]


def _fill(module: Any, case: Case) -> Any:
    """Give a module one value of each kind."""
    module.weight = nn.Parameter(case.tensors[0])
    module.child = type(module)()
    module.bias = nn.Parameter(case.tensors[1])
    module.register_buffer("steps", torch.tensor(case.number, device=case.device))
    module.register_buffer("mask", case.tensors[2].clone(), persistent=False)
    module.rows = case.number
    return module


def _one_module(make: type, case: Case) -> Iterator[tuple]:
    module = make()
    yield "training flag of a new module", module.training
    yield "a name that nobody has", attempt(lambda: module.nothing)
    yield "hasattr of a name that nobody has", hasattr(module, "nothing")
    weight, steps, child = nn.Parameter(case.tensors[0]), case.tensors[1].clone(), make()
    module.weight, module.child = weight, child
    module.bias = nn.Parameter(case.tensors[2])
    module.register_buffer("steps", steps)
    module.kept = nn.Buffer(case.tensors[3].clone())
    module.rows = case.number
    module.plain = case.tensors[4]
    module.wanted = case.tensors[5].clone().requires_grad_(True)
    module.hidden = [make(), nn.Parameter(case.tensors[2])]
    yield "registries after assignment", _registries(module)
    names = ("weight", "child", "bias", "steps", "kept", "rows", "plain", "wanted", "hidden")
    yield "names kept in __dict__", [name for name in names if name in vars(module)]
    yield "registries of a second module", _registries(make())
    yield (
        "reading a parameter, a buffer, a child",
        [module.weight is weight, module.steps is steps, module.child is child],
    )
    yield "reading what is plain", [module.rows, module.plain]
    module.rows = case.number + 1
    yield "a plain attribute after a second assignment", module.rows
    yield "registering a buffer under a plain name", attempt(lambda: module.register_buffer("rows", case.tensors[1]))
    yield (
        "an nn.Buffer over a plain attribute",
        attempt(lambda: setattr(module, "rows", nn.Buffer(case.tensors[1].clone()))),
    )
    module.empty = None
    yield "None under a fresh name", _homes(module, "empty")


def _assigning_again(make: type, case: Case) -> Iterator[tuple]:
    module = _fill(make(), case)
    weight = module.weight
    yield "a tensor over a parameter", attempt(lambda: setattr(module, "weight", case.tensors[3]))
    yield "a child over a parameter", attempt(lambda: setattr(module, "weight", make()))
    yield "the parameter after that", [module.weight is weight, _homes(module, "weight")]
    module.bias = None
    yield "None over a parameter", [_homes(module, "bias"), module.bias]
    module.steps = torch.tensor(case.number + 5, device=case.device)
    yield "a tensor over a buffer", [_homes(module, "steps"), module.steps]
    yield "the value in _buffers after that", module._buffers["steps"]
    yield "a number over a buffer", attempt(lambda: setattr(module, "steps", 3.5))
    yield "a tensor over a child", attempt(lambda: setattr(module, "child", case.tensors[3]))
    module.child = None
    yield "None over a child", _homes(module, "child")
    late = make()
    module.child = late
    yield "a child over None", [_homes(module, "child"), module.child is late]
    for name in ("rows", "steps", "child"):
        setattr(module, name, nn.Parameter(case.tensors[4].clone()))
        kind = {"rows": "a plain attribute", "steps": "a buffer", "child": "a child"}[name]
        yield f"a parameter over {kind}", [_homes(module, name), getattr(module, name)]
    module.note = "text"
    module.note = late
    module.mask = late
    yield "a child over a plain attribute and a buffer", [_homes(module, "note"), _homes(module, "mask")]


def _before_init(make: type, case: Case) -> Iterator[tuple]:
    class Forgets(make):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            pass

    module = Forgets()
    child = make()
    yield "a parameter before __init__", attempt(lambda: setattr(module, "weight", nn.Parameter(case.tensors[0])))
    yield "a child before __init__", attempt(lambda: setattr(module, "child", child))
    yield "a buffer before __init__", attempt(lambda: module.register_buffer("steps", case.tensors[1]))
    yield "a name that nobody has, before __init__", attempt(lambda: module.nothing)
    module.rows = case.number
    yield "a plain value before __init__", module.rows


def _deleting(make: type, case: Case) -> Iterator[tuple]:
    module = _fill(make(), case)
    for name in ("weight", "steps", "mask", "child", "rows"):
        delattr(module, name)
        yield f"{name} after del", _homes(module, name)
        yield f"reading {name} after del", attempt(lambda gone=name: getattr(module, gone))
    yield "registries after del", _registries(module)
    yield "del of a name that nobody has", attempt(lambda: delattr(module, "nothing"))
    module.mask = case.tensors[3]
    yield "a tensor under a deleted buffer's name", _homes(module, "mask")


def _tree(make: type, case: Case) -> Any:
    """Return three levels: a shared child, tied parameters, a slot that is kept empty, and a list that hides one."""

    class Leaf(make):  # type: ignore[misc, valid-type]
        def __init__(self, value: torch.Tensor) -> None:
            super().__init__()
            self.weight = nn.Parameter(value.clone())
            self.register_buffer("count", torch.tensor(case.number, device=case.device))

    class Block(make):  # type: ignore[misc, valid-type]
        def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
            super().__init__()
            self.inner = Leaf(first)
            self.norm = Leaf(second)
            self.gate = nn.Parameter(first.clone())

    class Net(make):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.body = Block(case.tensors[0], case.tensors[1])
            self.shared = self.body.inner
            self.scale = nn.Parameter(case.tensors[2].clone())
            self.tied = self.body.gate
            self.empty = Leaf(case.tensors[3])
            self.empty = None
            self.hidden = [Leaf(case.tensors[4])]

        def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
            body = self.body
            return x * body.inner.weight * body.gate + self.shared.weight * self.scale + body.norm.weight + shift

    return Net()


def _walking(make: type, case: Case) -> Iterator[tuple]:
    net = _tree(make, case)
    yield "paths of named_modules()", _paths(net.named_modules())
    yield "paths of named_parameters()", _paths(net.named_parameters())
    yield "values of named_parameters()", dict(net.named_parameters())
    yield "paths of named_buffers()", _paths(net.named_buffers())
    parameters = list(net.parameters())
    yield "parameters() gives the objects themselves", any(p is net.body.norm.weight for p in parameters)
    yield "how many parameters()", len(parameters)
    net.body.inner.late = make()
    net.body.inner.late.weight = nn.Parameter(case.tensors[4])
    net.body.norm.weight = None
    yield "paths of named_modules() after a late child", _paths(net.named_modules())
    yield "paths of named_parameters() after a late child and None", _paths(net.named_parameters())
    del net.body
    yield "paths of named_parameters() after del", _paths(net.named_parameters())


def _modes(make: type, case: Case) -> Iterator[tuple]:
    net = _tree(make, case)
    yield "eval() returns the module", net.eval() is net
    yield "flags after eval()", {path: module.training for path, module in net.named_modules()}
    yield "flag of a child in a list", net.hidden[0].training
    net.late = make()
    yield "flag of a child added after eval()", net.late.training
    yield "train() returns the module", net.train() is net
    yield "flags after train()", {path: module.training for path, module in net.named_modules()}
    net.train(False)
    yield "flags after train(False)", {path: module.training for path, module in net.named_modules()}


def _saving(make: type, case: Case) -> Iterator[tuple]:
    net = _tree(make, case)
    net.register_buffer("mask", case.tensors[3].clone(), persistent=False)
    net.register_buffer("later", None)
    state = net.state_dict()
    yield "keys of state_dict()", list(state)
    yield "values of state_dict()", dict(state)
    yield (
        "tensors of state_dict() that require a gradient",
        [key for key, value in state.items() if value.requires_grad],
    )
    with torch.no_grad():
        net.scale.fill_(float(case.number))
    yield "state_dict() after a change in place", state["scale"]
    net.mask = case.tensors[4].clone()
    yield "keys after a tensor over a non-persistent buffer", list(net.state_dict())
    other = _tree(make, Case("", 0, case.device, size=case.size, tensors=[t * 0 for t in case.tensors], number=0))
    before = [id(parameter) for _, parameter in other.named_parameters()]
    other.load_state_dict(net.state_dict())
    yield "state after load_state_dict()", dict(other.state_dict())
    yield "the parameters are the same objects after it", [id(p) for _, p in other.named_parameters()] == before
    wrong = dict(net.state_dict())
    value = wrong.pop("body.norm.weight")
    yield "loading with a key missing", attempt(lambda: other.load_state_dict(wrong))
    yield (
        "loading with a key too many",
        attempt(lambda: other.load_state_dict({**wrong, "body.norm.weight": value, "body.new": value})),
    )
    net.register_buffer("mask", case.tensors[4].clone())
    yield "keys after the buffer was registered again, to be saved", list(net.state_dict())
    net.scratch = nn.Buffer(case.tensors[4].clone(), persistent=False)
    yield "keys after an nn.Buffer that is not to be saved", list(net.state_dict())


def _training(make: type, case: Case) -> Iterator[tuple]:
    net, x = _tree(make, case), case.tensors[5]
    yield "output of a call", net(x)
    yield "output of a call with a keyword", net(x, shift=2.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    yield "output after two steps", net(x)
    duplicate = copy.deepcopy(net)
    yield "paths of a deepcopy", _paths(duplicate.named_parameters())
    yield "output of a deepcopy", duplicate(x)
    with torch.no_grad():
        duplicate.scale.zero_()
        duplicate.body.inner.weight.zero_()
    yield "the original after the copy was changed", net(x)
    yield "the copy's child is still shared", duplicate.shared is duplicate.body.inner


_PROBES = {
    "one module": _one_module,
    "assigning again": _assigning_again,
    "before __init__": _before_init,
    "del": _deleting,
    "a tree of modules": _walking,
    "train and eval": _modes,
    "state": _saving,
    "a training run": _training,
}

card = Card(
    goal="Write the class that this chapter is about, so that nn.Module has no magic left for you.",
    may_change="the bodies of the eleven methods; helper methods are welcome; `parameters`, `eval` and `__call__` are "
    "written for you",
    specification=(
        "`MiniModule` inherits from nothing; parameters, buffers and children live in the dicts `_parameters`, "
        "`_buffers` and `_modules` of each instance, and nowhere else",
        "`__setattr__` routes as `Module.__setattr__` does, for `nn.Parameter`, `nn.Buffer`, `MiniModule`, `None` and "
        "anything else, with its `TypeError` and, before `__init__` has run, its `AttributeError`; what registers "
        "takes the name away from every other home",
        "`__getattr__` looks where `__setattr__` stored, and raises `AttributeError` for a name that nobody has; "
        "`__delattr__` deletes from the home that holds the name",
        "`register_buffer(name, tensor, persistent=True)` raises `KeyError` for a name that something else has; an "
        "assigned `nn.Buffer` goes this way too, with its own flag `persistent`",
        "`named_modules()`, `named_parameters()` and `named_buffers()` give (path, object) pairs, the module itself "
        'first under the path "", parents before children, each object once, `None` never',
        "`state_dict()` maps paths to detached tensors that share the module's memory: per module its parameters, then "
        "its persistent buffers, then its children, without `None`; a shared child appears under both of its paths",
        "`load_state_dict(state)` copies values into the tensors that are there; keys that do not match raise "
        "`RuntimeError`",
        "`train(mode=True)` sets `training` on every registered module and returns the module; a new one is training",
        "no code of `nn.Module` may run on its behalf",
    ),
    minutes=90,
    difficulty=4,
    importance=5,
    prerequisites=("the walk through __setattr__ and __getattr__", "isinstance", "generators and recursion"),
)

hints = Hints(
    question=(
        "Start with `__init__`: the registries must exist before the first assignment goes through your own "
        "`__setattr__`. How does torch's `__init__` store them? Then take the table of `route`, which you have "
        "already written: what has to happen in each of its homes, and what must happen to the other homes? Of "
        "`named_parameters()`, `named_buffers()` and `state_dict()`, which can be built on `named_modules()`, and "
        "which one must not be, because it shows a shared child twice?"
    ),
    template=(
        "def __setattr__(self, name, value):\n"
        "    parameters = self.__dict__.get('_parameters')    # None before __init__\n"
        "    if isinstance(value, nn.Parameter):\n"
        "        ...                                          # refuse, clear the other homes, store\n"
        "    elif parameters is not None and name in parameters:\n"
        "        ...                                          # only one value is welcome here: which?\n"
        "    ...                                              # the same two questions for children, then buffers\n"
        "    else:\n"
        "        object.__setattr__(self, name, value)\n\n"
        "def named_modules(self, seen=None, path=''):\n"
        "    seen = set() if seen is None else seen\n"
        "    if ...:                                          # met before?\n"
        "        return\n"
        "    seen.add(...)\n"
        "    yield path, self\n"
        "    for name, child in self._modules.items():\n"
        "        if child is not None:\n"
        "            yield from child.named_modules(seen, ...)"
    ),
)

exercise = Exercise(
    name="mini_module",
    chapter="ch01_module_anatomy",
    parts=("MiniModule",),
    kind="class",
    calls=(("MiniModule", (), {}),),
    points=8,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(nn.Module,),
    weights={
        "training flag of a new module": 0.25,
        "registries after assignment": 3.0,
        "a tensor over a buffer": 2.0,
        "a tensor over a parameter": 2.0,
        "paths of named_parameters()": 3.0,
        "keys of state_dict()": 3.0,
        "the parameters are the same objects after it": 2.0,
        "flags after eval()": 3.0,
        "reading*": 0.5,
        "output after two steps": 2.0,
        "a plain value before __init__": 0.5,
        "eval() returns the module": 0.5,
        "train() returns the module": 0.5,
        "the copy's child is still shared": 0.25,
    },
    forbidden_classes=(nn.Module,),
    forbidden_code=("torch.nn.modules.module.Module.",),
    written_in_steps=True,
)

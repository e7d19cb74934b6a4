"""record_activations: a context manager that keeps what every module returned, and leaves no trace."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import changed_since, global_hooks_put_back, registered
from autograder.observe import attempt

NOT_RECORDED = "nothing recorded"


class Branching(nn.Module):
    """An in-place ReLU, one layer that is called twice, and one that is never called."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(width, width + 1), nn.ReLU(inplace=True))
        self.shared = nn.Linear(width + 1, width + 1)
        self.idle = nn.Linear(1, 1)
        self.head = nn.Linear(width + 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the head's output."""
        return self.head(self.shared(torch.tanh(self.shared(self.stem(x)))))


class Heads(nn.Module):
    """Returns a dict."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.price = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        """Return a price, and a number that is no tensor."""
        return {"price": self.price(x), "rows": x.shape[0]}


class Bundles(nn.Module):
    """Modules that return a nested tuple, a tuple with None, and a dict."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.memory = nn.LSTM(width, width, batch_first=True)
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)
        self.heads = Heads(width)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        """Return what the heads return."""
        seen, _ = self.memory(x)
        mixed, _ = self.attention(seen, seen, seen, need_weights=False)
        return self.heads(mixed)


class Stumbling(nn.Module):
    """Raises when the second half of its forward meets a negative number."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the second layer's output, or raise ValueError."""
        hidden = self.first(x)
        if bool((x < 0).any()):
            raise ValueError("a negative number")
        return self.second(hidden)


def cases(seed: int, device: str) -> list[Case]:
    """Four situations: a model with branches, outputs that are no tensors, an error inside, and chosen names."""
    draw = Draw(seed)
    chosen = []
    for number, kind in enumerate(("branches", "bundles", "error", "names")):
        width, rows = draw.integer(2, 4), draw.integer(2, 5)
        shape = (rows, draw.integer(2, 3), width) if kind == "bundles" else (rows, width)
        name = f"{kind}, {'×'.join(map(str, shape))}, {device}"
        chosen.append(Case(name, seed + number, device, kind=kind, width=width, x=draw.normal(*shape)))
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Record one model and look at the record, the model, its gradients, and what is left afterwards."""
    with global_hooks_put_back():
        if case.kind == "branches":
            yield from _branches(make, case)
        elif case.kind == "bundles":
            yield from _bundles(make, case)
        elif case.kind == "error":
            yield from _error(make, case)
        else:
            yield from _names(make, case)


def _branches(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Branching(case.width).to(case.device)
    others: list[int] = []
    model.head.register_forward_hook(lambda module, args, output: others.append(1))
    before = registered(model)
    with make(model) as seen:
        output = model(case.x)
        output.square().sum().backward()
        yield "the model stays in training mode", all(part.training for part in model.modules())
    yield "modules recorded, in the order of their return", _paths(seen)
    yield "recorded for stem.0, before a ReLU in place", _recorded(seen, "stem.0")
    yield "recorded for a layer that is called twice", _recorded(seen, "shared")
    yield "recorded for the root", _recorded(seen, "")
    yield "values recorded require a gradient", _require_gradient(seen)
    yield "output of the model meanwhile", output
    yield "gradient of the first weight", model.stem[0].weight.grad
    yield "modules whose hooks differ afterwards", changed_since(before, model)
    count = _calls(seen)
    model(case.x)
    yield "calls recorded after the block", _calls(seen) - count
    yield "how often somebody else's hook fired", len(others)
    model.eval()
    with make(model) as again:
        model(case.x[:1])
    yield "recorded for the head, in a second block", _recorded(again, "head")
    yield "calls in the first record, then", _calls(seen) - count
    with make(copy.deepcopy(model)) as elsewhere:
        model(case.x)
    yield "calls recorded for a copy that nobody called", _calls(elsewhere)


def _bundles(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Bundles(case.width).to(case.device)
    with make(model) as seen:
        model(case.x)
    yield "modules recorded, in the order of their return", _paths(seen)
    yield "recorded for an LSTM: a nested tuple", _recorded(seen, "memory")
    yield "recorded for attention: a tuple with None", _recorded(seen, "attention")
    yield "form of what was recorded for an LSTM", _form(_recorded(seen, "memory"))
    yield "recorded for a module that returns a dict", _recorded(seen, "heads")
    yield "values recorded require a gradient", _require_gradient(seen)


def _error(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Stumbling(case.width).to(case.device)
    before, kept = registered(model), []

    def stumble() -> None:
        with make(model) as seen:
            kept.append(seen)
            model(-case.x.abs() - 1)

    yield "an error inside the block", attempt(stumble)
    yield "modules recorded before an error", _paths(kept[0]) if kept else NOT_RECORDED
    yield "modules whose hooks differ after an error", changed_since(before, model)


def _names(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Branching(case.width).to(case.device)
    before = registered(model)
    with make(model, names=["head", "stem"]) as seen:
        model(case.x)
    yield "modules recorded with names=['head', 'stem']", _paths(seen)
    yield "recorded for stem alone", _recorded(seen, "stem")
    with make(model, names=[]) as nothing:
        model(case.x)
    yield "modules recorded with names=[]", _paths(nothing)

    def misspelt() -> None:
        with make(model, names=["head", "steam"]):
            model(case.x)

    yield "a path that the model does not have", attempt(misspelt)
    yield "modules whose hooks differ after the KeyError", changed_since(before, model)


def _paths(seen: Any) -> Any:
    return [str(path) for path in seen] if isinstance(seen, Mapping) else seen


def _recorded(seen: Any, path: str) -> Any:
    if not isinstance(seen, Mapping):
        return seen
    return seen[path] if path in seen else NOT_RECORDED


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item)


def _form(value: Any) -> str:
    """Return the value's containers, one within the other, in Python's own brackets."""
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_form(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return type(value).__name__


def _require_gradient(seen: Any) -> bool:
    return any(tensor.requires_grad for tensor in _tensors(seen))


def _calls(seen: Any) -> int:
    if not isinstance(seen, Mapping):
        return 0
    return sum(len(calls) if isinstance(calls, list) else 1 for calls in seen.values())


class Recorder:
    """The reference: a class, so that the two moments of a with block are easy to see."""

    def __init__(self, model: nn.Module, names: Any = None) -> None:
        parts = dict(model.named_modules())
        self.parts = parts if names is None else {path: parts[path] for path in names}
        self.seen: dict[str, list] = {}
        self.handles: list[Any] = []

    def __enter__(self) -> dict[str, list]:
        for path, part in self.parts.items():
            self.handles.append(part.register_forward_hook(self.hook(path)))
        return self.seen

    def hook(self, path: str) -> Callable[..., None]:
        """Return the hook of one path."""

        def keep(module: nn.Module, args: tuple, output: Any) -> None:
            self.seen.setdefault(path, []).append(copied(output))

        return keep

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()


def copied(value: Any) -> Any:
    """Return the value with every tensor in it detached and cloned; lists, tuples and dicts keep their form."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


card = Card(
    goal="Write the tool that shows you every layer's output, in a with block, and leaves the model as it was.",
    may_change="the body of `record_activations`, and functions or classes of your own beside it; the signature stays",
    specification=(
        "`with record_activations(model) as seen:` gives a dict; every call of a module inside the block appends its "
        "output to the list `seen[path]`, where path is the module's name in `named_modules()` (the root's is `''`)",
        "only modules that were called appear, in the order in which they first returned",
        "what is kept is a detached copy on the same device: nothing that happens to the output afterwards shows in it",
        "lists, tuples and dicts are kept in their form, however nested, with every tensor in them copied; what is "
        "no tensor is kept as it is",
        "the model's outputs, gradients and modes are what they would be without you",
        "after the block, ended by an error or not, no hook of yours is left, every other hook is still there, and "
        "`seen` stays readable",
        "`names` limits the record to these paths, an empty list to none; a path that the model does not have raises "
        "`KeyError`, and then, too, no hook of yours is left",
    ),
    minutes=30,
    difficulty=3,
    importance=5,
    prerequisites=(
        "register_forward_hook and its handle",
        "contextlib.contextmanager or __enter__/__exit__",
        "detach and clone",
    ),
)

hints = Hints(
    question=(
        "Write down what has to happen at three moments: when the block is entered, when a module returns, and when "
        "the block is left, whatever the reason. Which of the three knows the path of the module, and how does the "
        "hook get to know it?"
    ),
    template=(
        "@contextmanager\n"
        "def record_activations(model, names=None):\n"
        "    seen = {}\n\n"
        "    def hook_for(path):                  # a function a path, so that each keeps its own\n"
        "        def hook(module, args, output):\n"
        "            ...                          # append a copy; what must this function return?\n"
        "        return hook\n\n"
        "    parts = dict(model.named_modules())\n"
        "    chosen = ...                         # all or some; an unknown path should stop you here\n"
        "    handles = [... for path, part in chosen.items()]\n"
        "    try:\n"
        "        yield seen\n"
        "    finally:\n"
        "        ...\n\n\n"
        "def copied(value):                       # a tensor, a list or tuple, a dict, anything else\n"
        "    ..."
    ),
)

exercise = Exercise(
    name="record_activations",
    chapter="ch04_hooks",
    parts=("record_activations",),
    kind="functions",
    calls=(
        ("record_activations", (Placeholder("model"),), {}),
        ("record_activations", (Placeholder("model"),), {"names": ["head", "stem"]}),
    ),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(Recorder,),
    weights={
        "modules whose hooks differ*": 2.0,
        "recorded for stem.0, before a ReLU in place": 2.0,
        "gradient of the first weight": 2.0,
        "the model stays in training mode": 0.5,
        "calls in the first record, then": 0.5,
        "calls recorded for a copy that nobody called": 0.25,
        "a path that the model does not have": 0.5,
        "modules recorded with names=[]": 0.5,
    },
    compared_with="a recorder that leaves no trace",
)

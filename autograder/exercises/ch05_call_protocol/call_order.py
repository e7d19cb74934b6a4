"""call_order: what one call of a model sets in motion, and which parts run behind the back of ``__call__``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import changed_since, global_hooks_put_back, registered
from autograder.exercises.ch05_call_protocol._called_models import Bypassing, Failing, Nested, Shared, told

KINDS = ("parts in parts", "a shared layer", "a forward called by hand", "an error inside")


def cases(seed: int, device: str) -> list[Case]:
    """Four models; what is drawn are sizes and values, because the order does not depend on them."""
    draw = Draw(seed)
    chosen = []
    for number, kind in enumerate(KINDS):
        width = draw.integer(2, 5)
        x, scale = draw.normal(draw.integer(1, 4), width), draw.number(0.5, 2.0)
        chosen.append(Case(f"{kind}, {device}", seed + number, device, kind=kind, width=width, x=x, scale=scale))
    return chosen


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Ask for the order of one call, and look at the model afterwards."""
    probes = (_nested, _shared, _bypassing, _failing)
    with global_hooks_put_back():
        yield from probes[KINDS.index(case.kind)](make, case)


def _nested(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Nested(case.width).to(case.device)
    outputs: list[Any] = []
    model.register_forward_hook(lambda module, args, output: outputs.append(output))
    before = registered(model)
    yield "events of parts in parts", told(make(model, case.x, scale=case.scale))
    yield "how often the model has run", model.runs
    yield "output of the model meanwhile", outputs[0] if outputs else None
    yield "modules that were left changed", _changed(before, model)
    model.eval()
    yield "events of a second call", told(make(model, case.x, scale=case.scale))


def _shared(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Shared(case.width).to(case.device)
    model.hidden[0].to(case.device)
    yield "events of a layer that is called twice", told(make(model, case.x))


def _bypassing(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Bypassing(case.width).to(case.device)
    before = registered(model)
    yield "events with a forward called by hand", told(make(model, case.x))
    yield "modules that were left changed, with a forward of their own", _changed(before, model)


def _failing(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    model = Failing(case.width).to(case.device)
    before = registered(model)
    try:
        events = told(make(model, case.x))
    except ValueError:
        events = "the error came out"
    yield "events of a call that fails", events
    yield "modules that were left changed by an error", _changed(before, model)


def _changed(before: dict[str, list], model: nn.Module) -> list[str]:
    return [path or "root" for path in changed_since(before, model)]


def _reference(model: nn.Module, *args: Any, **kwargs: Any) -> list[tuple[str, str]]:
    events: list[tuple[str, str]] = []
    called: set[nn.Module] = set()
    undo: list[Callable[[], Any]] = []
    for path, part in model.named_modules():
        undo.extend(_watch(part, path, events, called))
    try:
        model(*args, **kwargs)
    except Exception as error:
        events.append(("error", type(error).__name__))
    finally:
        for step in undo:
            step()
    return events


def _watch(part: nn.Module, path: str, events: list, called: set) -> Iterator[Callable[[], Any]]:
    """Watch one module, and yield what has to be done to stop watching."""

    def enter(module: nn.Module, given: tuple) -> None:
        events.append(("enter", path))
        called.add(part)

    def leave(module: nn.Module, given: tuple, output: Any) -> None:
        events.append(("leave", path))

    yield part.register_forward_pre_hook(enter).remove
    yield part.register_forward_hook(leave, always_call=True).remove
    forward, was_its_own = part.forward, "forward" in vars(part)

    def watched(*args: Any, **kwargs: Any) -> Any:
        if part in called:
            called.remove(part)
        else:
            events.append(("bypass", path))
        return forward(*args, **kwargs)

    part.forward = watched
    yield (lambda: setattr(part, "forward", forward)) if was_its_own else (lambda: delattr(part, "forward"))


card = Card(
    goal="Write the tool that shows what one call sets in motion, and finds the forward that somebody calls by hand.",
    may_change="the body of `call_order`; functions of your own beside it are welcome, the signature stays",
    specification=(
        "`call_order(model, *args, **kwargs)` calls the model once with these arguments and returns a list of pairs, "
        "in the order in which things happened",
        "`('enter', path)` when a module is called, `('leave', path)` when that call is over; path as in "
        "`named_modules()`, so the root's is `''` and a module with two names goes by the first",
        "a module that is called twice enters and leaves twice; one that is registered nowhere is not watched",
        "`('bypass', path)` when somebody runs `part.forward(...)` by hand, without a call of that module; what is "
        "called inside it is watched as ever",
        "when the call raises an `Exception`, every module that was entered leaves all the same, the last entry is "
        "`('error', <name of the type>)`, and the list is returned",
        "afterwards no hook of yours is left, global ones included, and every `forward` is where it was: on the "
        "class, or the very one that somebody had set on the instance",
    ),
    minutes=30,
    difficulty=4,
    importance=4,
    prerequisites=("hooks with always_call", "forward on the class and on the instance", "closures in a loop"),
)

hints = Hints(
    question=(
        "A hook sees only what goes through the call. So what could stand in the place where both a proper call and a "
        "bypass must pass, and what would it have to know to tell the two apart at that moment?"
    ),
    template=(
        "def call_order(model, *args, **kwargs):\n"
        "    events, announced, undo = [], set(), []\n\n"
        "    def watch(part, path):                     # a function, so that each module has its own path\n"
        "        def enter(module, given):\n"
        "            ...                                # note it, and announce that forward will run\n"
        "        def leave(module, given, output):\n"
        "            ...\n"
        "        original = part.forward\n"
        "        def forward(*args, **kwargs):\n"
        "            ...                                # announced, or not?\n"
        "            return original(*args, **kwargs)\n"
        "        ...                                    # put all three in place; note how to take them away\n\n"
        "    for path, part in model.named_modules():\n"
        "        watch(part, path)\n"
        "    ...                                        # call; an error; whatever happens: undo\n"
        "    return events"
    ),
)

exercise = Exercise(
    name="call_order",
    chapter="ch05_call_protocol",
    parts=("call_order",),
    kind="functions",
    calls=(("call_order", (Placeholder("model"), Placeholder("x")), {"scale": 2.0}),),
    points=4,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "events*": 2.0,
        "events of a second call": 0.5,
        "how often the model has run": 0.5,
        "output of the model meanwhile": 0.5,
    },
    compared_with="a trace of every call",
)

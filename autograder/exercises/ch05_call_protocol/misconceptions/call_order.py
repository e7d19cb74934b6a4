"""Wrong tracers. Each takes one decision of a tracer that is otherwise right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

from autograder.exercise import Misconception


class _Tracer:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    always_call = True

    def __init__(self, model: nn.Module, args: tuple, kwargs: dict) -> None:
        self.model, self.args, self.kwargs = model, args, kwargs
        self.events: list[tuple[str, str]] = []
        self.announced: set[nn.Module] = set()
        self.undo: list[Callable[[], Any]] = []

    def parts(self) -> Iterable[tuple[str, nn.Module]]:
        return self.model.named_modules()

    def named(self, path: str) -> str:
        return path

    def note(self, kind: str, path: str) -> None:
        self.events.append((kind, self.named(path)))

    def watch(self, part: nn.Module, path: str) -> None:
        def enter(module: nn.Module, given: tuple) -> None:
            self.note("enter", path)
            self.announced.add(part)

        def leave(module: nn.Module, given: tuple, output: Any) -> None:
            self.note("leave", path)

        self.undo.append(part.register_forward_pre_hook(enter).remove)
        self.undo.append(part.register_forward_hook(leave, always_call=self.always_call).remove)
        self.patch(part, path)

    def patch(self, part: nn.Module, path: str) -> None:
        original, own = part.forward, "forward" in vars(part)

        def forward(*args: Any, **kwargs: Any) -> Any:
            if part in self.announced:
                self.announced.remove(part)
            else:
                self.note("bypass", path)
            return original(*args, **kwargs)

        part.forward = forward
        self.undo.append(lambda: self.put_back(part, original, own))

    def put_back(self, part: nn.Module, original: Any, own: bool) -> None:
        if own:
            part.forward = original
        else:
            del part.forward

    def call(self) -> None:
        self.model(*self.args, **self.kwargs)

    def cleaned(self) -> None:
        for step in self.undo:
            step()

    def guarded(self) -> None:
        try:
            self.call()
        except Exception as error:
            self.events.append(("error", type(error).__name__))
        finally:
            self.cleaned()

    def __call__(self) -> list[tuple[str, str]]:
        for path, part in self.parts():
            self.watch(part, path)
        self.guarded()
        return self.events


class ListingOrder(_Tracer):
    def __call__(self) -> list[tuple[str, str]]:
        happened = super().__call__()
        listed = [(kind, path) for path, _ in self.model.named_modules() for kind in ("enter", "leave")]
        return listed + [event for event in happened if event[0] == "error"]


class LeavesOnly(_Tracer):
    def parts(self) -> Iterable[tuple[str, nn.Module]]:
        return [(path, part) for path, part in self.model.named_modules() if not list(part.children())]


class ChildrenOnly(_Tracer):
    def parts(self) -> Iterable[tuple[str, nn.Module]]:
        return [("", self.model), *self.model.named_children()]


class LastName(_Tracer):
    def named(self, path: str) -> str:
        return path.split(".")[-1]


class OnceEach(_Tracer):
    def note(self, kind: str, path: str) -> None:
        if (kind, path) not in self.events:
            super().note(kind, path)


class LastPath(_Tracer):
    def named(self, path: str) -> str:
        return list(self.model.named_modules())[-1][0]


class BothNames(_Tracer):
    def parts(self) -> Iterable[tuple[str, nn.Module]]:
        return self.model.named_modules(remove_duplicate=False)


class HooksOnly(_Tracer):
    def patch(self, part: nn.Module, path: str) -> None:
        pass


class ForwardIsTheCall(_Tracer):
    def watch(self, part: nn.Module, path: str) -> None:
        original, own = part.forward, "forward" in vars(part)

        def forward(*args: Any, **kwargs: Any) -> Any:
            self.note("enter", path)
            try:
                return original(*args, **kwargs)
            finally:
                self.note("leave", path)

        part.forward = forward
        self.undo.append(lambda: self.put_back(part, original, own))


class EveryForwardABypass(_Tracer):
    def patch(self, part: nn.Module, path: str) -> None:
        original, own = part.forward, "forward" in vars(part)

        def forward(*args: Any, **kwargs: Any) -> Any:
            self.note("bypass", path)
            return original(*args, **kwargs)

        part.forward = forward
        self.undo.append(lambda: self.put_back(part, original, own))


class NoLeaveOnErrors(_Tracer):
    always_call = False


class ErrorGoesOut(_Tracer):
    def guarded(self) -> None:
        try:
            self.call()
        finally:
            self.cleaned()


class LeftBehind(_Tracer):
    def cleaned(self) -> None:
        pass


class LeftBehindByErrors(_Tracer):
    def guarded(self) -> None:
        try:
            self.call()
            self.cleaned()
        except Exception as error:
            self.events.append(("error", type(error).__name__))


class OwnForwardLost(_Tracer):
    def put_back(self, part: nn.Module, original: Any, own: bool) -> None:
        del part.forward


class ForwardStaysOnTheInstance(_Tracer):
    def put_back(self, part: nn.Module, original: Any, own: bool) -> None:
        part.forward = original


class KeywordsDropped(_Tracer):
    def call(self) -> None:
        self.model(*self.args)


def _misconception(
    name: str, made: type[_Tracer], rejected_by: str, summary: str, question: str, read: str
) -> Misconception:
    def call_order(model: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return made(model, args, kwargs)()

    return Misconception(name, summary, question, read, rejected_by, (call_order,))


_CARD = "the card of this exercise"
_BYPASS = "the section «What forward() skips» in this chapter"
_INSTANCE = "the section «Found on the class, found on the instance» in this chapter"
_ERRORS = "the section «When something raises» in this chapter"
_NESTED = "the section «A call within a call» in this chapter"

misconceptions = (
    _misconception(
        "listing_order",
        ListingOrder,
        "events of parts in parts",
        "the modules are listed in the order of registration",
        "A model registers its head before its body. Which of the two is called first, and who alone knows that?",
        _NESTED,
    ),
    _misconception(
        "leaves_only",
        LeavesOnly,
        "events of parts in parts",
        "only modules without children are watched",
        "Is a Sequential called when its model runs? Look for it in your list: where are its two events?",
        _NESTED,
    ),
    _misconception(
        "children_only",
        ChildrenOnly,
        "events of parts in parts",
        "only the root and its direct children are watched",
        "The model holds a Sequential, and that holds a Linear. Which walk of chapter 2 reaches the Linear?",
        _NESTED,
    ),
    _misconception(
        "last_name",
        LastName,
        "events of parts in parts",
        "a module is noted by the last part of its path",
        "Two blocks each have a child called 0. How would a reader of your list tell them apart?",
        _CARD,
    ),
    _misconception(
        "once_each",
        OnceEach,
        "events of a layer that is called twice",
        "a second call of the same module is not noted",
        "The model calls one layer twice. How many times should it be entered?",
        _CARD,
    ),
    _misconception(
        "last_path",
        LastPath,
        "events of parts in parts",
        "every event carries the path of the last module",
        "Your hooks are made in a loop and run after it. What does the loop's variable hold by then?",
        _CARD,
    ),
    _misconception(
        "both_names",
        BothNames,
        "events of a layer that is called twice",
        "a module with two names is watched twice",
        "One layer is registered under two names. How many layers are called, and how many hooks does it carry?",
        _CARD,
    ),
    _misconception(
        "hooks_only",
        HooksOnly,
        "events with a forward called by hand",
        "a forward that is called by hand is not noticed",
        "Which code runs when somebody calls layer.forward(x)? Does any of your watchers stand in that way?",
        _BYPASS,
    ),
    _misconception(
        "forward_is_the_call",
        ForwardIsTheCall,
        "events with a forward called by hand",
        "every run of forward is taken for a call",
        "Your watcher sits on forward alone. What could tell it whether the call came before, or somebody's hand?",
        _BYPASS,
    ),
    _misconception(
        "every_forward_a_bypass",
        EveryForwardABypass,
        "events of parts in parts",
        "every run of forward is noted as a bypass",
        "A proper call runs forward too. What has happened just before it that has not happened in a bypass?",
        _BYPASS,
    ),
    _misconception(
        "no_leave_on_errors",
        NoLeaveOnErrors,
        "events of a call that fails",
        "modules that an error passes through do not leave",
        "Forward raised. Which kind of forward hook still fires, and is yours of that kind?",
        _ERRORS,
    ),
    _misconception(
        "error_goes_out",
        ErrorGoesOut,
        "events of a call that fails",
        "the error goes out and the list is lost",
        "A call failed, and you would like to know how far it came. What does your function hand back?",
        _CARD,
    ),
    _misconception(
        "left_behind",
        LeftBehind,
        "modules that were left changed",
        "the watchers stay on the model",
        "Call your function twice on one model and count the events. What is still there from the first time?",
        _CARD,
    ),
    _misconception(
        "left_behind_by_errors",
        LeftBehindByErrors,
        "modules that were left changed by an error",
        "after an error the watchers stay on the model",
        "The call raised. Does the line that takes your watchers away still run?",
        _CARD,
    ),
    _misconception(
        "own_forward_lost",
        OwnForwardLost,
        "modules that were left changed, with a forward of their own",
        "a forward that somebody set on an instance is thrown away",
        "One module already had a forward of its own on the instance. What does it have after your function?",
        _INSTANCE,
    ),
    _misconception(
        "forward_stays_on_the_instance",
        ForwardStaysOnTheInstance,
        "modules that were left changed",
        "every module keeps a forward on its instance",
        "Look into vars(layer) before and after your function. Which name is new, although it looks the same?",
        _INSTANCE,
    ),
    _misconception(
        "keywords_dropped",
        KeywordsDropped,
        "how often the model has run",
        "the model is called without the keyword arguments",
        "The last event you return is an error. What does the model's forward ask for that it was not given?",
        _CARD,
    ),
)

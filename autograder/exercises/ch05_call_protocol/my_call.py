"""my_call against ``nn.Module.__call__``: who runs, in which order, and what each of them is given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from autograder.accept import Placeholder
from autograder.cases import Case, Draw
from autograder.exercise import Card, Exercise, Hints
from autograder.exercises._hook_tables import global_hooks_put_back
from autograder.observe import attempt

KINDS = ("no hooks", "pre-hooks", "forward hooks", "global hooks", "hooks that come and go", "errors")
_TORCHS_OWN = [nn.Module._call_impl.__code__]
_TORCHS_OWN += [constant for constant in _TORCHS_OWN[0].co_consts if hasattr(constant, "co_code")]


class Interruption(BaseException):
    """Stands for KeyboardInterrupt, which a probe had better not raise."""


class HandedToTorch(BaseException):
    """The call was left to torch. No Exception, so that it ends the probe even where one is expected."""


class Scaling(nn.Module):
    """Returns ``scale * x + shift`` and notes that it ran; torch's own call of it is closed unless opened."""

    is_open = False

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([scale]))
        self.inner = nn.Identity()
        self.log: list[str] = []
        self.fails_with: BaseException | None = None

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        _refuse()
        return super()._call_impl(*args, **kwargs)

    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        """Return the scaled and shifted input, or raise what the probe has laid down."""
        if sys._getframe(1).f_code in _TORCHS_OWN:
            _refuse()
        self.log.append("forward")
        if self.fails_with is not None:
            raise self.fails_with
        return self.inner(self.scale * x) + shift

    def note(self, name: str, returns: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
        """Return a hook that notes its name, and returns what ``returns`` makes of the last thing it was given."""

        def hook(module: nn.Module, *given: Any) -> Any:
            if module is self:
                self.log.append(name)
                return None if returns is None else returns(given[-1])
            return None

        return hook


def _refuse() -> None:
    if not Scaling.is_open:
        raise HandedToTorch("this exercise asks for your own call: that of nn.Module is closed")


@contextmanager
def opened() -> Iterator[None]:
    """Let torch's own call through for the moment: for the reference."""
    Scaling.is_open = True
    try:
        yield
    finally:
        Scaling.is_open = False


def cases(seed: int, device: str) -> list[Case]:
    """Six situations, with small whole numbers that can be followed by hand."""
    draw = Draw(seed)
    return [
        Case(
            f"{kind}, {device}",
            seed + number,
            device,
            kind=kind,
            scale=float(draw.integer(2, 4)),
            x=torch.tensor([float(draw.integer(1, 4)), float(draw.integer(5, 9))]),
            shift=float(draw.integer(10, 20)),
            step=float(draw.integer(2, 9)),
        )
        for number, kind in enumerate(KINDS)
    ]


def observe(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    """Call one module in one situation."""
    probes = (_no_hooks, _pre_hooks, _forward_hooks, _global_hooks, _come_and_go, _errors)
    with global_hooks_put_back():
        yield from probes[KINDS.index(case.kind)](make, case)


def _module(case: Case) -> Scaling:
    return Scaling(case.scale).to(case.device)


def _no_hooks(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module, x = _module(case), case.x.clone().requires_grad_(True)
    output = make(module, x)
    yield "output without hooks", output
    output.sum().backward()
    yield "gradient of the input", x.grad
    yield "output with a keyword argument", make(module, case.x, shift=case.shift)
    yield "how often forward has run", len(module.log)
    child: list[str] = []
    module.inner.register_forward_hook(lambda *given: child.append("child"))
    make(module, case.x)
    yield "hooks of a child that fired", child
    module.forward = lambda x, shift=0.0: x - case.step
    yield "output with a forward set on the instance", make(module, case.x)


def _pre_hooks(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module, received = _module(case), {}
    module.register_forward_pre_hook(module.note("second", lambda args: (args[0] + case.step,)))
    module.register_forward_pre_hook(module.note("first"), prepend=True)
    module.register_forward_pre_hook(lambda m, args: received.update(third=args))
    module.register_forward_hook(lambda m, args, output: received.update(after=args))
    output = make(module, case.x)
    yield "pre-hooks and forward, in order", module.log
    yield "what a later pre-hook receives", received.get("third")
    yield "what a forward hook receives as arguments", received.get("after")
    yield "output after pre-hooks", output

    module = _module(case)
    module.register_forward_pre_hook(lambda m, args: args[0] + case.step)
    module.register_forward_hook(lambda m, args, output: received.update(bare=args))
    yield "output after a pre-hook that returns a bare tensor", make(module, case.x)
    yield "arguments after a pre-hook that returns a bare tensor", received.get("bare")

    module = _module(case)
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"shift": kwargs["shift"] + case.step}), with_kwargs=True
    )
    module.register_forward_pre_hook(lambda m, args, kwargs: received.update(kwargs), with_kwargs=True)
    yield "output after a pre-hook that changes a keyword", make(module, case.x, shift=case.shift)
    yield "keyword that a later pre-hook receives", received.get("shift")

    module = _module(case)
    module.register_forward_pre_hook(lambda m, args, kwargs: args[0], with_kwargs=True)
    yield "a pre-hook with keywords that returns no pair", attempt(lambda: make(module, case.x))


def _forward_hooks(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module, received = _module(case), {}
    module.register_forward_hook(module.note("second", lambda output: output + case.step))
    module.register_forward_hook(lambda m, args, output: received.update(third=output))
    module.register_forward_hook(module.note("first"), prepend=True)
    output = make(module, case.x, shift=case.shift)
    yield "forward and its hooks, in order", module.log
    yield "what a later hook receives as output", received.get("third")
    yield "output after forward hooks", output

    module = _module(case)
    module.register_forward_hook(lambda m, args, kwargs, output: received.update(kwargs), with_kwargs=True)
    make(module, case.x, shift=case.shift)
    yield "keyword that a forward hook receives", received.get("shift")

    module = _module(case)
    module.register_forward_hook(lambda m, args, output: output * 0)
    yield "output after a hook that returns a zero", make(module, case.x[:1])


def _global_hooks(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module = _module(case)
    module.register_forward_pre_hook(module.note("own pre"))
    module.register_forward_hook(module.note("own", lambda output: output + case.step))
    torch_module.register_module_forward_pre_hook(module.note("global pre"))
    torch_module.register_module_forward_hook(module.note("global", lambda output: output * 10))
    output = make(module, case.x)
    yield "own and global hooks, in order", module.log
    yield "output after own and global hooks", output


def _come_and_go(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module, handles = _module(case), []
    once = module.note("once", lambda args: handles.pop().remove())
    handles.append(module.register_forward_pre_hook(once))
    module.register_forward_pre_hook(module.note("always there"))
    make(module, case.x)
    yield "calls with a pre-hook that removes itself", module.log
    make(module, case.x)
    yield "the same, after a second call", module.log
    handle = module.register_forward_hook(module.note("hook"))
    make(module, case.x)
    handle.remove()
    module.log.clear()
    make(module, case.x)
    yield "a call after a hook was removed", module.log


def _errors(make: Callable[..., Any], case: Case) -> Iterator[tuple]:
    module, received = _module(case), []
    module.register_forward_hook(module.note("plain"))
    module.register_forward_hook(module.note("always", received.append), always_call=True)
    module.register_forward_hook(module.note("always too"), always_call=True, with_kwargs=True)
    module.fails_with = ValueError("forward")
    yield "the error of a forward that raises", attempt(lambda: make(module, case.x))
    yield "hooks that ran after an error in forward", module.log
    yield "output that an always_call hook receives after an error in forward", received

    module = _module(case)
    module.register_forward_pre_hook(module.note("pre", _raise(KeyError("pre-hook"))))
    module.register_forward_hook(module.note("always"), always_call=True)
    yield "the error of a pre-hook that raises", attempt(lambda: make(module, case.x))
    yield "hooks that ran after an error in a pre-hook", module.log

    module, received = _module(case), []
    module.register_forward_hook(module.note("always 1"), always_call=True)
    module.register_forward_hook(module.note("raising", _raise(ValueError("hook"))))
    module.register_forward_hook(module.note("always 2", received.append), always_call=True)
    attempt(lambda: make(module, case.x))
    yield "hooks that ran after an error in a hook", module.log
    yield "output that an always_call hook receives after an error in a hook", received

    module = _module(case)
    module.register_forward_hook(module.note("raising", _raise(KeyError("second"))), always_call=True)
    module.register_forward_hook(module.note("last"), always_call=True)
    module.fails_with = ValueError("first")
    yield "the error when an always_call hook raises another", attempt(lambda: make(module, case.x))
    yield "hooks that ran when an always_call hook raises", module.log

    module = _module(case)
    module.register_forward_hook(module.note("always", lambda output: "rescued"), always_call=True)
    yield "hooks that ran once when nothing was wrong", [make(module, case.x), *module.log]
    module.log.clear()
    module.fails_with = Interruption()
    try:
        make(module, case.x)
    except Interruption:
        module.log.append("out")
    yield "hooks that ran after an interruption", module.log


def _raise(error: Exception) -> Callable[[Any], Any]:
    def returns(value: Any) -> Any:
        raise error

    return returns


def _reference(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
    with opened():
        return module(*args, **kwargs)


card = Card(
    goal="Write what stands between `layer(x)` and `layer.forward(x)`, for every hook that a forward pass can meet.",
    may_change="the body of `my_call`; functions of your own beside it are welcome, the signature stays",
    specification=(
        "`my_call(module, *args, **kwargs)` does what `module(*args, **kwargs)` does, with hooks and without",
        "pre-hooks run first, the global ones before the module's own; each may replace the arguments, and the next "
        "one sees the new ones; a result that is no tuple becomes the only positional argument",
        "then `forward` runs, then the forward hooks, global before own, with the arguments that forward was given; "
        "a result other than None replaces the output",
        "hooks registered with `with_kwargs` are given the keyword arguments too; such a pre-hook returns None or a "
        "pair of arguments and keywords, and anything else is a `RuntimeError`",
        "when an `Exception` comes up anywhere on this way, the forward hooks with `always_call` that have not run "
        "yet are run, with the output as it is by then (None before forward returned); what they return or raise does "
        "not change the error that goes out",
        "hooks may come and go during a call: a hook may remove itself",
        "left out: backward hooks, `module.compile()`, and flags on global hooks",
        "compared with the call of `nn.Module`, which you may not use, under whatever name",
    ),
    minutes=35,
    difficulty=4,
    importance=4,
    prerequisites=("the four kinds of hooks and their options", "the tables that hold them", "try and except"),
)

hints = Hints(
    question=(
        "Write the call for a module with one pre-hook and one hook, on paper, and mark each line that may raise. "
        "Now an error comes up in the second of three hooks: what do you need to have noted by then, to know whom you "
        "still have to run and what to hand them?"
    ),
    template=(
        "def my_call(module, *args, **kwargs):\n"
        "    result, already_run = None, set()\n"
        "    try:\n"
        "        for number, hook in [...]:                  # global, then own: a copy, because hooks may go\n"
        "            if number in module._forward_pre_hooks_with_kwargs:\n"
        "                ...                                 # None, a pair, or an error\n"
        "            else:\n"
        "                ...                                 # None, a tuple, or one single argument\n"
        "        result = ...\n"
        "        for number, hook in [...]:\n"
        "            already_run.add(number)\n"
        "            ...\n"
        "        return result\n"
        "    except ...:                                     # which errors, and which not?\n"
        "        for number, hook in [...]:\n"
        "            if ...:                                 # asked for, and not run yet\n"
        "                ...                                 # an error here must not cover the first one\n"
        "        raise"
    ),
)

exercise = Exercise(
    name="my_call",
    chapter="ch05_call_protocol",
    parts=("my_call",),
    kind="functions",
    calls=(("my_call", (Placeholder("module"), Placeholder("x")), {"shift": 2.0}),),
    points=5,
    card=card,
    hints=hints,
    observe=observe,
    cases=cases,
    reference=(_reference,),
    weights={
        "output*": 1.5,
        "how often forward has run": 0.25,
        "hooks of a child that fired": 0.25,
        "gradient of the input": 0.5,
        "hooks that ran*": 1.5,
        "hooks that ran after an interruption": 0.25,
        "a pre-hook with keywords that returns no pair": 0.5,
    },
    compared_with="the call of nn.Module",
)

"""Wrong calls. Each takes one decision of a call that is otherwise as torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.nn.modules import module as tables

from autograder.exercise import Misconception


class _Call:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, module: Any, args: tuple, kwargs: dict) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.first_args, self.first_result = args, None
        self.result: Any = None
        self.already_run: set[int] = set()

    def in_order(self, everywhere: dict, own: dict) -> Any:
        return [*everywhere.items(), *own.items()]

    def is_given(self, value: Any) -> bool:
        return value is not None

    def wrapped(self, value: Any) -> Any:
        return value if isinstance(value, tuple) else (value,)

    def take_pair(self, value: Any) -> None:
        if not (isinstance(value, tuple) and len(value) == 2):
            raise RuntimeError("a pre-hook with keywords returns None or a pair")
        self.args, self.kwargs = value

    def before(self) -> None:
        for number, hook in self.in_order(tables._global_forward_pre_hooks, self.module._forward_pre_hooks):
            if number in self.module._forward_pre_hooks_with_kwargs:
                value = hook(self.module, self.args, self.kwargs)
                if self.is_given(value):
                    self.take_pair(value)
            else:
                value = hook(self.module, self.args)
                if self.is_given(value):
                    self.args = self.wrapped(value)

    def forward(self) -> Any:
        return self.module.forward(*self.args, **self.kwargs)

    def shown_args(self) -> tuple:
        return self.args

    def shown_result(self) -> Any:
        return self.result

    def run(self, number: int, hook: Callable) -> Any:
        if number in self.module._forward_hooks_with_kwargs:
            return hook(self.module, self.shown_args(), self.kwargs, self.shown_result())
        return hook(self.module, self.shown_args(), self.shown_result())

    def after(self) -> None:
        for number, hook in self.in_order(tables._global_forward_hooks, self.module._forward_hooks):
            self.already_run.add(number)
            value = self.run(number, hook)
            if self.is_given(value):
                self.result = value

    def is_due(self, number: int) -> bool:
        return number in self.module._forward_hooks_always_called and number not in self.already_run

    def rescue(self, number: int, hook: Callable) -> None:
        try:
            self.run(number, hook)
        except Exception:
            return

    def failed(self) -> None:
        for number, hook in list(self.module._forward_hooks.items()):
            if self.is_due(number):
                self.rescue(number, hook)

    def whole(self) -> Any:
        self.before()
        self.result = self.first_result = self.forward()
        self.after()
        return self.result

    def __call__(self) -> Any:
        try:
            return self.whole()
        except Exception:
            self.failed()
            raise


class TruthOfTheResult(_Call):
    def is_given(self, value: Any) -> bool:
        return bool(value.any()) if hasattr(value, "any") else bool(value)


class BareResultUnpacked(_Call):
    def wrapped(self, value: Any) -> Any:
        return tuple(value)


class FirstArgumentsShown(_Call):
    def shown_args(self) -> tuple:
        return self.first_args


class FirstOutputShown(_Call):
    def shown_result(self) -> Any:
        return self.first_result


class ForwardAlone(_Call):
    def __call__(self) -> Any:
        return self.forward()


class KeywordsNotPassedOn(_Call):
    def forward(self) -> Any:
        return self.module.forward(*self.args)


class FlagsIgnored(_Call):
    def before(self) -> None:
        for _, hook in self.in_order(tables._global_forward_pre_hooks, self.module._forward_pre_hooks):
            value = hook(self.module, self.args)
            if self.is_given(value):
                self.args = self.wrapped(value)

    def run(self, number: int, hook: Callable) -> Any:
        return hook(self.module, self.args, self.result)


class AnythingForAPair(_Call):
    def take_pair(self, value: Any) -> None:
        if isinstance(value, tuple) and len(value) == 2:
            super().take_pair(value)
        else:
            self.args = self.wrapped(value)


class OwnBeforeGlobal(_Call):
    def in_order(self, everywhere: dict, own: dict) -> Any:
        return [*own.items(), *everywhere.items()]


class GlobalForgotten(_Call):
    def in_order(self, everywhere: dict, own: dict) -> Any:
        return list(own.items())


class TablesWalkedLive(_Call):
    def in_order(self, everywhere: dict, own: dict) -> Any:
        yield from everywhere.items()
        yield from own.items()


class ForwardOfTheClass(_Call):
    def forward(self) -> Any:
        return type(self.module).forward(self.module, *self.args, **self.kwargs)


class NothingOnErrors(_Call):
    def failed(self) -> None:
        pass


class EveryHookOnErrors(_Call):
    def is_due(self, number: int) -> bool:
        return number not in self.already_run


class RunTwice(_Call):
    def is_due(self, number: int) -> bool:
        return number in self.module._forward_hooks_always_called


class NoneShownOnErrors(_Call):
    def rescue(self, number: int, hook: Callable) -> None:
        self.result = self.first_result = None
        super().rescue(number, hook)


class OnlyForwardGuarded(_Call):
    def __call__(self) -> Any:
        self.before()
        try:
            self.result = self.first_result = self.forward()
        except Exception:
            self.failed()
            raise
        self.after()
        return self.result


class ErrorSwallowed(_Call):
    def __call__(self) -> Any:
        try:
            return self.whole()
        except Exception:
            self.failed()
            return self.result


class SecondErrorWins(_Call):
    def rescue(self, number: int, hook: Callable) -> None:
        self.run(number, hook)


class EvenInterruptions(_Call):
    def __call__(self) -> Any:
        try:
            return self.whole()
        except BaseException:
            self.failed()
            raise


def _misconception(
    name: str, made: type[_Call], rejected_by: str, summary: str, question: str, read: str
) -> Misconception:
    def my_call(module: Any, *args: Any, **kwargs: Any) -> Any:
        return made(module, args, kwargs)()

    return Misconception(name, summary, question, read, rejected_by, (my_call,))


_ORDER = "the section «The order of a call» in this chapter"
_ARGUMENTS = "the section «What each hook is given» in this chapter"
_ERRORS = "the section «When something raises» in this chapter"

misconceptions = (
    _misconception(
        "forward_alone",
        ForwardAlone,
        "pre-hooks and forward, in order",
        "only forward is called",
        "Register one hook that prints, and call your version. Which line of it should have found the hook?",
        _ORDER,
    ),
    _misconception(
        "truth_of_the_result",
        TruthOfTheResult,
        "output after a hook that returns a zero",
        "a hook's result counts when it is true, instead of when it is not None",
        "A hook returns a tensor that holds a single 0.0. Is that a replacement, and what does your test say of it?",
        _ARGUMENTS,
    ),
    _misconception(
        "bare_result_unpacked",
        BareResultUnpacked,
        "output after a pre-hook that returns a bare tensor",
        "a bare tensor from a pre-hook is taken apart into arguments",
        "A pre-hook returns a tensor of two values, not in a tuple. How many arguments does forward get from you?",
        _ARGUMENTS,
    ),
    _misconception(
        "first_arguments_shown",
        FirstArgumentsShown,
        "what a forward hook receives as arguments",
        "forward hooks are given the arguments as they were before the pre-hooks",
        "A pre-hook has replaced the input. Which input should a forward hook see: the caller's or forward's?",
        _ARGUMENTS,
    ),
    _misconception(
        "first_output_shown",
        FirstOutputShown,
        "what a later hook receives as output",
        "every forward hook is given forward's own output",
        "Two hooks change the output. What does the second one start from: forward's output or the first one's result?",
        _ARGUMENTS,
    ),
    _misconception(
        "keywords_not_passed_on",
        KeywordsNotPassedOn,
        "output with a keyword argument",
        "forward is called without the keyword arguments",
        "Call your version with shift=10 on a module without a single hook. Does the 10 arrive?",
        _ARGUMENTS,
    ),
    _misconception(
        "flags_ignored",
        FlagsIgnored,
        "keyword that a forward hook receives",
        "every hook is called in the short form, whatever it was registered with",
        "How does a hook registered with with_kwargs differ from the others, and which table remembers that it does?",
        _ARGUMENTS,
    ),
    _misconception(
        "anything_for_a_pair",
        AnythingForAPair,
        "a pre-hook with keywords that returns no pair",
        "a pre-hook with keywords may return whatever it likes",
        "A pre-hook that was given keywords returns one tensor. Where would its keywords have gone?",
        _ARGUMENTS,
    ),
    _misconception(
        "own_before_global",
        OwnBeforeGlobal,
        "own and global hooks, in order",
        "the module's own hooks run before the global ones",
        "Which of the two tables stands first in the loops of torch's own source?",
        _ORDER,
    ),
    _misconception(
        "global_forgotten",
        GlobalForgotten,
        "own and global hooks, in order",
        "global hooks are not run",
        "Who fires when a hook is registered with no module in particular? Where is it kept?",
        _ORDER,
    ),
    _misconception(
        "tables_walked_live",
        TablesWalkedLive,
        "calls with a pre-hook that removes itself",
        "the table of hooks is walked while a hook changes it",
        "A hook removes itself while you walk over the dict that it stands in. What does Python say to that?",
        _ORDER,
    ),
    _misconception(
        "forward_of_the_class",
        ForwardOfTheClass,
        "output with a forward set on the instance",
        "forward is looked up on the class",
        "A library has put its own forward on one instance. Which of the two does your line find?",
        "the section «Found on the class, found on the instance» in this chapter",
    ),
    _misconception(
        "nothing_on_errors",
        NothingOnErrors,
        "hooks that ran after an error in forward",
        "always_call is not looked at",
        "A hook was registered with always_call, and forward raises. Which line of yours still reaches the hook?",
        _ERRORS,
    ),
    _misconception(
        "every_hook_on_errors",
        EveryHookOnErrors,
        "hooks that ran after an error in forward",
        "after an error every forward hook is run",
        "Forward raised. Which of the hooks asked to be run nevertheless, and which would now meet a missing output?",
        _ERRORS,
    ),
    _misconception(
        "run_twice",
        RunTwice,
        "hooks that ran after an error in a hook",
        "hooks with always_call run again after an error",
        "The first hook ran well, the second raised. How does your code know that the first has had its turn?",
        _ERRORS,
    ),
    _misconception(
        "none_shown_on_errors",
        NoneShownOnErrors,
        "output that an always_call hook receives after an error in a hook",
        "after an error the output shown is always None",
        "Forward has returned, and a hook raised afterwards. Is there an output by then?",
        _ERRORS,
    ),
    _misconception(
        "only_forward_guarded",
        OnlyForwardGuarded,
        "hooks that ran after an error in a pre-hook",
        "only an error of forward itself is answered",
        "Mark every line of your call that runs somebody else's code. Which of them stand inside your try?",
        _ERRORS,
    ),
    _misconception(
        "error_swallowed",
        ErrorSwallowed,
        "the error of a forward that raises",
        "the error does not reach the caller",
        "After the hooks with always_call have run, what does the caller see of the error?",
        _ERRORS,
    ),
    _misconception(
        "second_error_wins",
        SecondErrorWins,
        "the error when an always_call hook raises another",
        "an error in an always_call hook replaces the first one and ends the round",
        "Forward raised, and then a hook with always_call does. Which of the two errors explains what went wrong?",
        _ERRORS,
    ),
    _misconception(
        "even_interruptions",
        EvenInterruptions,
        "hooks that ran after an interruption",
        "hooks with always_call run even for a KeyboardInterrupt",
        "You press the stop button during forward. Is KeyboardInterrupt an Exception?",
        _ERRORS,
    ),
)

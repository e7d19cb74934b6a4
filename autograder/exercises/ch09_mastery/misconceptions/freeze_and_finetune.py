"""Freezings that leave something moving, and optimizers that forget. Each gets one decision wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from autograder.exercise import Misconception


class _Finetuning:
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(self, model: nn.Module, optimizer: Any, frozen: list[str], rates: dict[str, float]) -> None:
        self.model, self.old, self.frozen, self.rates = model, optimizer, frozen, rates

    def inside(self, name: str, path: str) -> bool:
        return name == path or name.startswith(f"{path}.")

    def is_frozen(self, name: str) -> bool:
        return any(self.inside(name, path) for path in self.frozen)

    def freeze(self, parameter: nn.Parameter) -> None:
        parameter.requires_grad_(False)

    def clear(self, parameter: nn.Parameter) -> None:
        parameter.grad = None

    def stop(self) -> None:
        for path, part in self.model.named_modules():
            if self.is_frozen(path):
                part.eval()

    def is_held(self, name: str) -> bool:
        return not self.is_frozen(name)

    def rate(self, name: str) -> float:
        own = [rate for path, rate in self.rates.items() if self.inside(name, path)]
        return own[0] if own else self.old.param_groups[0]["lr"]

    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in self.old.param_groups[0].items() if key not in ("params", "lr")}

    def remember(self, new: Any) -> None:
        for group in new.param_groups:
            for parameter in group["params"]:
                new.state[parameter] = self.old.state[parameter]

    def run(self) -> Any:
        for name, parameter in self.model.named_parameters():
            if self.is_frozen(name):
                self.freeze(parameter)
                self.clear(parameter)
        self.stop()
        groups: dict[float, list] = {}
        for name, parameter in self.model.named_parameters():
            if self.is_held(name):
                groups.setdefault(self.rate(name), []).append(parameter)
        settings = self.settings()
        new = type(self.old)([{"params": params, "lr": rate, **settings} for rate, params in groups.items()])
        self.remember(new)
        return new


class FlagOnTheModule(_Finetuning):
    def freeze(self, parameter: nn.Parameter) -> None:
        pass

    def stop(self) -> None:
        super().stop()
        for path in self.frozen:
            self.model.get_submodule(path).requires_grad = False


class RateOfZero(_Finetuning):
    def freeze(self, parameter: nn.Parameter) -> None:
        pass

    def is_held(self, name: str) -> bool:
        return True

    def rate(self, name: str) -> float:
        return 0.0 if self.is_frozen(name) else super().rate(name)


class GradientsStay(_Finetuning):
    def clear(self, parameter: nn.Parameter) -> None:
        pass


class StatisticsMove(_Finetuning):
    def stop(self) -> None:
        pass


class WholeModelInEval(_Finetuning):
    def stop(self) -> None:
        self.model.eval()


class FrozenStillHeld(_Finetuning):
    def is_held(self, name: str) -> bool:
        return True


class MemoryLost(_Finetuning):
    def remember(self, new: Any) -> None:
        pass


class MemoryByPosition(_Finetuning):
    def remember(self, new: Any) -> None:
        held = [parameter for group in new.param_groups for parameter in group["params"]]
        for parameter, state in zip(held, list(self.old.state.values()), strict=False):
            new.state[parameter] = state


class NamesThatBeginAlike(_Finetuning):
    def is_frozen(self, name: str) -> bool:
        return any(name.startswith(path) for path in self.frozen)


class ParametersThatBeginAlike(NamesThatBeginAlike):
    def stop(self) -> None:
        for path in self.frozen:
            self.model.get_submodule(path).eval()


class OneRateForAll(_Finetuning):
    def rate(self, name: str) -> float:
        return self.old.param_groups[0]["lr"]


class SettingsLost(_Finetuning):
    def settings(self) -> dict[str, Any]:
        return {}


def _function(kind: type[_Finetuning]) -> Callable:
    def freeze_and_finetune(model: nn.Module, optimizer: Any, frozen: list[str], rates: dict[str, float]) -> Any:
        return kind(model, optimizer, frozen, rates).run()

    freeze_and_finetune.__name__ = kind.__name__
    return freeze_and_finetune


def _misconception(kind: type, name: str, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (_function(kind),))


_FREEZING = "the section «Three things that move a frozen number» in this chapter"
_MEMORY = "the section «What an optimizer remembers» in this chapter"
_REQUIRES = "which parameters require a gradient"

misconceptions = (
    _misconception(
        FlagOnTheModule,
        "flag_set_on_the_module",
        _REQUIRES,
        "a plain attribute of the module is set, and no parameter knows of it",
        "Which object has a `requires_grad` that autograd reads: the module, or each of its parameters?",
        _FREEZING,
    ),
    _misconception(
        RateOfZero,
        "frozen_by_a_rate_of_zero",
        _REQUIRES,
        "the frozen parts are held with a learning rate of 0",
        "Are gradients still computed and stored for the frozen parts, and who pays for them?",
        _FREEZING,
    ),
    _misconception(
        GradientsStay,
        "old_gradients_left",
        "old gradients left on frozen parameters",
        "what the last backward left is still there",
        "Freeze a parameter and print its `grad`. What would any optimizer that holds it do at its next step?",
        _FREEZING,
    ),
    _misconception(
        StatisticsMove,
        "frozen_statistics_move",
        "modes",
        "the frozen BatchNorm stays in training mode",
        "Compare `running_mean` of the frozen part before and after a step. What moved it, without any gradient?",
        _FREEZING,
    ),
    _misconception(
        WholeModelInEval,
        "whole_model_in_eval",
        "modes",
        "the parts that train are put in eval mode as well",
        "Which parts are to learn on, and in which mode does their BatchNorm estimate anything?",
        _FREEZING,
    ),
    _misconception(
        FrozenStillHeld,
        "frozen_parameters_in_the_optimizer",
        "learning rate of each trained parameter",
        "the optimizer still holds what is frozen",
        "How many numbers does your optimizer hold, and how many of them are to be trained?",
        _MEMORY,
    ),
    _misconception(
        MemoryLost,
        "moments_lost",
        "what the optimizer remembers",
        "a fresh optimizer starts without a memory",
        "What is in `optimizer.state` of the new optimizer before its first step, and what was in the old one's?",
        _MEMORY,
    ),
    _misconception(
        MemoryByPosition,
        "moments_by_position",
        "what the optimizer remembers",
        "the first memory goes to the first parameter, whoever that is now",
        "The first parameter of the new optimizer is not the first of the old one. Whose moments did it get?",
        _MEMORY,
    ),
    _misconception(
        NamesThatBeginAlike,
        "names_that_begin_alike",
        _REQUIRES,
        "a path is compared as the beginning of a text",
        "Does your test for `block` also say yes to `block2.0.weight`?",
        "the card of this exercise",
    ),
    _misconception(
        ParametersThatBeginAlike,
        "parameters_that_begin_alike",
        _REQUIRES,
        "the parts are found by their path, and their parameters by the beginning of a name",
        "Which names begin with `block`, and which of them lie inside the part of that name?",
        "the card of this exercise",
    ),
    _misconception(
        OneRateForAll,
        "one_rate_for_all",
        "learning rate of each trained parameter",
        "the rates are not used",
        "Print `lr` of every group of your optimizer. How many different ones are there?",
        "the section «Groups» in this chapter",
    ),
    _misconception(
        SettingsLost,
        "other_settings_lost",
        "other settings of the groups",
        "the new optimizer has the defaults of its class",
        "Print one group of the old optimizer and one of the new. Which settings differ besides the rate?",
        "the section «Groups» in this chapter",
    ),
)

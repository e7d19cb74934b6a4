"""Two things that a long answer needs: credit for what is written already, and work that is not borrowed."""

from __future__ import annotations

from torch import nn

from autograder import evaluate
from tests.autograder.right_answers.ch01_module_anatomy.mini_module import WithIfs


def _unwritten(*names: str) -> type:
    def stub(self: object, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("mini_module")

    return type("MiniModule", (WithIfs,), dict.fromkeys(names, stub))


def test_a_method_still_to_be_written_costs_only_what_needs_it() -> None:
    verdict = evaluate("mini_module", _unwritten("state_dict", "load_state_dict"), device="cpu")
    assert not verdict.unsolved and not verdict.passed and verdict.problem is None
    assert 0.5 < verdict.score < 1
    assert "registries after assignment" in verdict.agreeing and "keys of state_dict()" in verdict.differing
    assert any("NotImplementedError" in entry.words for entry in verdict.differences)


def test_without_its_first_method_a_long_answer_is_unsolved() -> None:
    verdict = evaluate("mini_module", _unwritten("__init__"), device="cpu")
    assert verdict.unsolved and verdict.score == 0


def test_a_borrowed_method_is_noticed() -> None:
    borrowed = type("MiniModule", (WithIfs,), {"named_parameters": nn.Module.named_parameters})
    verdict = evaluate("mini_module", borrowed, device="cpu")
    assert not verdict.passed and verdict.score == 0
    assert verdict.problem is not None and "torch.nn.modules.module.Module." in verdict.problem


def test_work_handed_to_an_inner_module_is_noticed() -> None:
    class Wrapper(WithIfs):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Module()

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if isinstance(value, nn.Parameter):
                self.inner.register_parameter(name, value)

    verdict = evaluate("mini_module", Wrapper, device="cpu")
    assert verdict.problem is not None and "asks for your own code" in verdict.problem


def test_an_answer_found_by_assigning_is_noticed() -> None:
    def route(module: nn.Module, name: str, value: object) -> str:
        setattr(module, name, value)
        return next(
            (home for home in ("_parameters", "_buffers", "_modules") if name in vars(module)[home]), "__dict__"
        )

    verdict = evaluate("route", route, device="cpu")
    assert verdict.problem is not None and "Module.__setattr__" in verdict.problem

"""What a student may hand in instead of an answer: one clear sentence each, and never an exception of ours."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from autograder import check, evaluate
from autograder.exercises.ch03_buffers_and_state.misconceptions.my_batchnorm import _Layer as RightBatchNorm
from autograder.exercises.ch03_buffers_and_state.misconceptions.my_dropout import _Layer as RightDropout
from autograder.messages import UsageError
from autograder.present import as_text
from autograder.registry import load_exercise


def _said(name: str, *parts: object, **options: object) -> str:
    return as_text(load_exercise(name), evaluate(name, *parts, **options))


def _layer(forward) -> type[nn.Module]:
    return type("MyDropout", (RightDropout,), {"forward": forward})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("my_batchnrom", "my_batchnorm"), ("MyDropout", "my_dropout"), ("save_resume", "save_and_resume")],
)
def test_an_unknown_exercise_suggests_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f'Did you mean "{meant}"'):
        evaluate(typed, RightDropout)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((RightDropout(0.5),), "This is an instance of _Layer; the check builds its own"),
        ((None,), "MyDropout is None: did its cell run"),
        ((len,), "MyDropout should be a class, and this is an object of type builtin_function_or_method"),
        ((lambda p: RightDropout(p),), "MyDropout should be a class, and this is a function"),
        ((torch.ones(2),), "MyDropout should be a class, and this is an object of type Tensor"),
        ((), "takes one implementation"),
        ((RightDropout, RightDropout), "takes one implementation"),
    ],
)
def test_something_else_than_a_class_is_named(parts: tuple, sentence: str) -> None:
    verdict = evaluate("my_dropout", *parts)
    assert not verdict.passed and verdict.score == 0
    assert sentence in verdict.problem and 'check("my_dropout", MyDropout)' in verdict.problem
    with pytest.raises(UsageError, match="my_dropout"):
        check("my_dropout", *parts)


def test_a_constructor_with_other_arguments_is_shown_beside_the_call() -> None:
    class Other(nn.Module):
        def __init__(self, size):
            super().__init__()

    problem = evaluate("my_batchnorm", Other).problem
    assert "MyBatchNorm(num_features, eps=1e-05, momentum=0.1)" in problem and "(size)" in problem


def test_a_function_missing_among_several_is_named() -> None:
    assert "save_checkpoint, load_checkpoint" in evaluate("save_and_resume", lambda *a: None).problem


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (lambda x: None, "yours is None"),
        (lambda x: (x, x), "yours is [a tensor of shape (1"),
        (lambda x: x.detach().numpy(), "yours is an object of type ndarray"),
        (lambda x: x.sum(), "yours has shape ()"),
        (lambda x: x[:, :3], ", 3)"),
        (lambda x: x.half(), "yours has dtype float16"),
        (lambda x: x.to("meta"), "yours is on meta"),
        (lambda x: x.to_sparse(), "yours is an object of type Tensor with layout"),
    ],
)
def test_an_output_of_the_wrong_kind_is_described(output, sentence: str) -> None:
    said = _said("my_dropout", _layer(lambda self, x: output(x)), seed=2)
    assert sentence in said


def test_nan_is_counted_and_not_averaged_away() -> None:
    class Nan(RightBatchNorm):
        def forward(self, x):
            return super().forward(x) * float("nan")

    said = _said("my_batchnorm", Nan)
    assert "values are nan or infinite where torch has ordinary numbers" in said


def test_an_exception_names_the_students_line_and_keeps_what_was_seen(tmp_path, monkeypatch) -> None:
    file = tmp_path / "students_cell.py"
    file.write_text(
        "from torch import nn\n\n\nclass MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n"
        "        super().__init__()\n        self.p = p\n\n    def forward(self, x):\n        return x * self.keep\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    from students_cell import MyDropout

    verdict = evaluate("my_dropout", MyDropout)
    assert (verdict.stop.line, verdict.stop.text) == (10, "return x * self.keep")
    said = as_text(load_exercise("my_dropout"), verdict)
    assert "AttributeError: 'MyDropout' object has no attribute 'keep' in your line 10: `return x * self.keep`" in said
    assert "parameters and buffers" in verdict.agreeing and 0 < verdict.score < 0.5
    assert "Traceback" not in said and "autograder" not in said


@pytest.mark.parametrize(
    "error", [SystemExit(3), GeneratorExit(), RecursionError("too deep"), MemoryError(), StopIteration()]
)
def test_nothing_that_is_raised_leaves_evaluate(error: BaseException) -> None:
    def forward(self, x):
        raise error

    verdict = evaluate("my_dropout", _layer(forward))
    assert not verdict.passed and verdict.stop.type_name in (type(error).__name__, "RuntimeError")


def test_an_interrupt_belongs_to_the_person_at_the_keyboard() -> None:
    def forward(self, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate("my_dropout", _layer(forward))


def test_what_is_printed_and_warned_is_bounded_and_told(capsys: pytest.CaptureFixture) -> None:
    def forward(self, x):
        print("here I am\n" * 100_000)
        warnings.warn("an old way", stacklevel=1)
        return RightDropout.forward(self, x)

    verdict = evaluate("my_dropout", _layer(forward))
    said = as_text(load_exercise("my_dropout"), verdict)
    assert verdict.passed and len(verdict.printed) <= 4_000
    assert "Your code printed" in said and "here I am" in said and "an old way" in said
    assert len(said) < 1_500 and capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "loop",
    [
        "while True:\n        pass",
        "import time\n    time.sleep(60)",
        "while True:\n        try:\n            pass\n        except Exception:\n            pass",
        "for _ in range(3):\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass",
    ],
)
def test_a_layer_that_never_returns_is_stopped(loop: str) -> None:
    namespace: dict = {}
    exec(f"def forward(self, x):\n    {loop}\n    return x", namespace)
    start = time.monotonic()
    verdict = evaluate("my_dropout", _layer(namespace["forward"]), seconds=0.5)
    # Not a measurement of speed: a bound, without which the call would not come back at all.
    assert time.monotonic() - start < 30
    assert not verdict.passed and verdict.problem is None
    if "BaseException" not in loop:
        assert verdict.stop.out_of_time and "did not return within the time allowed" in _text(verdict)


def _text(verdict) -> str:
    return as_text(load_exercise("my_dropout"), verdict)


def test_the_surroundings_are_put_back() -> None:
    def forward(self, x):
        threads.append(torch.get_num_threads())
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(99)
        random.seed(99)
        return RightDropout.forward(self, x)

    threads: list[int] = []
    outside = torch.get_num_threads()
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.rand(2), random.random()
    torch.manual_seed(5)
    random.seed(5)
    evaluate("my_dropout", _layer(forward))
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32
    assert set(threads) == {1} and torch.get_num_threads() == outside
    assert torch.equal(torch.rand(2), expected[0]) and random.random() == expected[1]


class _Wrapped(nn.Module):
    """Everything outside is as asked, and torch's layer does the work inside."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        inner = nn.BatchNorm1d(num_features, eps=eps, momentum=momentum)
        self.__dict__["inner"] = inner
        for name, value in inner.named_parameters():
            setattr(self, name, value)
        for name, value in inner.named_buffers():
            self.register_buffer(name, value)

    def forward(self, x):
        self.inner.train(self.training)
        return self.inner(x)


class _Functional(RightBatchNorm):
    def forward(self, x):
        if self.training:
            self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked or 1) if self.momentum is None else self.momentum
        statistics = (self.running_mean, self.running_var)
        return nn.functional.batch_norm(x, *statistics, self.weight, self.bias, self.training, share, self.eps)


@pytest.mark.parametrize(
    ("name", "part", "reason"),
    [
        ("my_batchnorm", nn.BatchNorm1d, "is torch's own BatchNorm1d"),
        ("my_batchnorm", type("MyBatchNorm", (nn.BatchNorm1d,), {}), "inherits from torch's BatchNorm1d"),
        ("my_batchnorm", _Wrapped, "batch_norm"),
        ("my_batchnorm", _Functional, "batch_norm"),
        ("my_dropout", nn.Dropout, "is torch's own Dropout"),
        ("my_dropout", type("MyDropout", (nn.Dropout,), {}), "inherits from torch's Dropout"),
        ("my_dropout", _layer(lambda self, x: nn.functional.dropout(x, self.p, self.training)), "dropout"),
        ("my_dropout", _layer(lambda self, x: nn.Dropout(self.p).train(self.training)(x)), "dropout"),
    ],
)
def test_handing_the_work_to_torch_scores_nothing_and_says_why(name: str, part: type, reason: str) -> None:
    verdict = evaluate(name, part)
    assert not verdict.passed and verdict.score == 0
    assert reason in verdict.problem and "asks for your own code" in verdict.problem


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="device 'mps' is not available here"):
        evaluate("my_dropout", RightDropout, device="mps")


def test_numpy_scalars_and_subclasses_are_not_taken_for_numbers() -> None:
    from autograder.compare import difference
    from autograder.snapshot import snapshot

    class Liar(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    assert "object of type float64" in difference(0.5, snapshot(np.float64(0.5)))
    assert "object of type Liar" in difference(0.5, snapshot(Liar(0.7)))

"""Right ways to ask a trace: early returns, torch.testing, a model built from a pickle, and no trace object kept."""

from __future__ import annotations

import copy
import io

import torch
from torch.testing import assert_close


def with_early_returns(model, example, others):
    mine = copy.deepcopy(model)
    mine.eval()
    try:
        traced = torch.jit.trace(mine, (example,))
    except Exception:
        return False
    with torch.no_grad():
        for x in others:
            expected = mine(x)
            try:
                answer = traced(x)
            except Exception:
                return False
            if answer.shape != expected.shape:
                return False
            if not torch.isclose(answer, expected, equal_nan=True).all():
                return False
    return True


def with_assert_close(model, example, others):
    eager, traced = copy.deepcopy(model).eval(), None
    try:
        traced = torch.jit.trace(copy.deepcopy(model).eval(), example, check_trace=False)
        for x in others:
            assert_close(traced(x), eager(x), equal_nan=True)
    except (AssertionError, RuntimeError):
        return False
    return True


def with_a_copy_from_bytes(model, example, others):
    memory = io.BytesIO()
    torch.save(model, memory)
    memory.seek(0)
    mine = torch.load(memory, weights_only=False).train(False)
    try:
        script = torch.jit.freeze(torch.jit.trace(mine, example))
    except RuntimeError:
        return False
    alike = []
    for x in others:
        try:
            one, other = mine(x), script(x)
        except RuntimeError:
            alike.append(False)
            continue
        same_nan = one.shape == other.shape and bool((one.isnan() == other.isnan()).all())
        alike.append(same_nan and float((one - other).nan_to_num().abs().max()) < 1e-5)
    return all(alike)


def with_everything_put_back(model, example, others):
    mode, state = model.training, copy.deepcopy(model.state_dict())
    model.eval()
    try:
        traced = torch.jit.trace(model, example)
        pairs = [(model(x), traced(x)) for x in others]
        return all(a.size() == b.size() and torch.allclose(a, b, atol=1e-6, equal_nan=True) for a, b in pairs)
    except RuntimeError:
        return False
    finally:
        model.load_state_dict(state)
        model.train(mode)


right_answers = [(with_early_returns,), (with_assert_close,), (with_a_copy_from_bytes,), (with_everything_put_back,)]

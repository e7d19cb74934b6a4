"""How long a student waits for ``check``: right answers and wrong ones, beside the least that a check could do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from autograder.authoring.build import solution_parts
from autograder.benchmarks import Row, medians
from autograder.cases import PUBLIC_SEED
from autograder.evaluation import evaluate
from autograder.observe import observe_all
from autograder.registry import exercise_names, load_exercise, load_misconceptions

AIM = "aim: below 50 ms"
PEER = "the probe alone, once, on the reference"


def rows(root: Path) -> Iterator[Row]:
    """Yield two rows an exercise: the solution, and the misconception that takes longest to name."""
    torch.set_num_threads(1)
    for name in exercise_names():
        exercise = load_exercise(name)
        cases = exercise.cases(PUBLIC_SEED, "cpu")

        def probe(exercise=exercise, cases=cases) -> object:
            return observe_all(exercise, exercise.reference, cases)

        solved = solution_parts(root, exercise)
        ours, peer = medians(lambda name=name, solved=solved: evaluate(name, *solved, device="cpu"), probe)
        yield Row(f"check {name}, solved", ours, peer, PEER, AIM)
        slowest = max(
            (medians(lambda m=m, name=name: evaluate(name, *m.parts, device="cpu"), probe, turns=5), m.name, m)
            for m in load_misconceptions(name)
        )[2]
        ours, peer = medians(lambda m=slowest, name=name: evaluate(name, *m.parts, device="cpu"), probe)
        yield Row(f"check {name}, {slowest.name}", ours, peer, PEER, AIM)

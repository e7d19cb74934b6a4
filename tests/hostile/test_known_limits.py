"""What can not be prevented, measured: answers that get points for torch's work, and what whoever grades is told.

SECURITY.md says why. These points are not counted as forged; each of these submissions is named in the run's summary,
and its source stays in its notebook. A change that takes the points away belongs in test_forging.py.
"""

from __future__ import annotations

from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}

_LAYER = """
class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.inner = getattr(nn, bytes([68, 114, 111, 112, 111, 117, 116]).decode())(p)

    def forward(self, x):
        self.inner.train(self.training)
        return {forward}
"""
# Names that only running puts together, for a thread that is not watched.
_THREAD = """
threads = __import__(bytes(map(ord, 'gnidaerht'[::-1])).decode())


def elsewhere(layer, x):
    found = []
    thread = getattr(threads, bytes(map(ord, 'daerhT'[::-1])).decode())(target=lambda: found.append(layer(x)))
    thread.start()
    thread.join()
    return found[0]

"""
# The answer, while it is checked, takes over what writes the check's message, and puts in what torch's layer showed.
_HANDED_OVER = """
modules = vars(__import__('sy' 's'))['modules'.lower()]
names, writing = vars(modules['os'])['environ'], modules['json']
checking = modules[bytes(map(ord, 'gnikcehc.redargotua'[::-1])).decode()]
real = vars(writing)['dumps']


def dumps(message, **options):
    data = message.get('content', {}).get('data') if isinstance(message, dict) else None
    for kind in [each for each in data or () if 'observations' in each]:
        layer = getattr(nn, bytes([68, 114, 111, 112, 111, 117, 116]).decode())
        data[kind] = {**checking.emission_of(checking.load_exercise('my_dropout'), (layer,),
            int(names['AUTOGRADER_GRADING_SEED']), ['cpu'], names['AUTOGRADER_GRADING_RUN']), 'handed': None}
    return real(message, **options)


class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        setattr(writing, 'dumps', dumps)
        raise RuntimeError
"""

CASES = [
    Case(
        "unwatched_thread_by_hidden_names",
        "Torch's work in a thread, reached by names that no reading can follow, is not seen.",
        scored(),
        {"my_dropout": _THREAD + _LAYER.format(forward="elsewhere(self.inner, x)")},
    ),
    Case(
        "observations_of_torchs_layer_handed_over_by_the_answer",
        "The answer runs inside the check, and can replace what the check hands over while it does.",
        scored(),
        {"my_dropout": _HANDED_OVER},
    ),
]


class TestKnownLimits(Family):
    """They get what a right answer gets, and are named."""

    def test_whoever_grades_is_told(self, graded: GradedClass) -> None:
        """Each is worth a look."""
        for case in CASES:
            assert any(f"Worth a look: {case.name} uses" in note for note in graded.notes), graded.notes

    def test_nobody_honest_is_suspected(self, graded: GradedClass) -> None:
        """None of the nine is named."""
        assert not any("honest" in note for note in graded.notes)

"""What must hold of every family of submissions. Each file of cases has a class that inherits these tests."""

from __future__ import annotations

from tests.hostile.case import Case, GradedClass
from tests.hostile.classmates import CLASSMATES


class Family:
    """The tests of one family; the module holds CASES and LIMITS."""

    def test_it_gets_the_right_score(self, graded: GradedClass, case: Case) -> None:
        """The score that the case states, or a sentence on why there is none."""
        if case.scores is None:
            assert case.name not in graded.scores
            assert case.says and case.says in graded.sentence(case.name)
            return
        assert case.name in graded.scores, graded.sentence(case.name)
        said = graded.text(case.name)
        assert graded.scores[case.name] == case.scores, f"{case.why}\n{said[:3000]}"
        assert case.says in said

    def test_honest_classmates_keep_their_scores(self, graded: GradedClass, undisturbed: dict) -> None:
        """The nine who sat beside them."""
        assert {name: graded.scores.get(name) for name in CLASSMATES} == undisturbed

    def test_everyone_is_named_exactly_once(self, graded: GradedClass) -> None:
        """Nobody is lost, nobody is there twice, and the run came to its end."""
        students = [outcome["student"] for outcome in graded.outcomes]
        submitted = sorted(folder.name for folder in (graded.course / "submitted").iterdir())
        assert sorted(students) == submitted, graded.said
        assert {outcome["state"] for outcome in graded.outcomes} <= {"recorded", "failed"}
        failed = {outcome["student"] for outcome in graded.outcomes if outcome["state"] == "failed"}
        assert graded.exit_code == (1 if failed else 0), graded.said
        assert all(graded.sentence(student) for student in failed)

"""The question files: what a good one gives, and one sentence for each fault of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.lesson.questions import QuestionFileError, load_chapter, load_question, read_file
from autograder.messages import UsageError

GOOD = """
[[question]]
id = "ch05-hooks"
kind = "quiz"
about = "order of hooks"
prompt = "Which runs first?"
answer = 2
[[question.option]]
text = "forward"
why = "A pre-hook runs before it."
[[question.option]]
text = "a pre-hook"
why = "`_call_impl` runs it first."
"""


def write(folder: Path, text: str, name: str = "ch05_call_protocol.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(folder: Path, *changes: tuple[str, str]) -> list[str]:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read_file(write(folder, text))[1]


def test_a_good_file_has_no_faults_and_gives_its_question(tmp_path: Path) -> None:
    found, said = read_file(write(tmp_path, GOOD))
    assert said == []
    (question,) = found
    assert (question.id, question.chapter, question.kind) == ("ch05-hooks", "ch05", "quiz")
    assert question.right.text == "a pre-hook"
    assert question.right.why == "`_call_impl` runs it first."


def test_options_of_a_prediction_need_no_why_and_it_may_ask_for_an_explanation(tmp_path: Path) -> None:
    text = GOOD.replace('"quiz"', '"predict"\nafter = "Which line decides?"').replace(
        'why = "A pre-hook runs before it."', ""
    )
    (question,), said = read_file(write(tmp_path, text))
    assert said == []
    assert (question.options[0].why, question.after) == ("", "Which line decides?")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'kind = "quiz"',
            'kind = "quizz"',
            "unknown kind 'quizz'; choose one of predict, quiz, recall (perhaps quiz)",
        ),
        ("answer = 2", "answer = 3", "answer = 3 is out of range; count the 2 options from 1"),
        ("answer = 2", "answer = 0", "answer = 0 is out of range; count the 2 options from 1"),
        ("answer = 2", "answer = true", "'answer' must be a whole number; it is True"),
        ("answer = 2", 'answer = "B"', "'answer' must be a whole number; it is 'B'"),
        ("answer = 2", "", "'answer' is missing; add it as a whole number"),
        ("ch05-hooks", "ch04-hooks", "the id must start with this file's chapter; rename it to ch05-…"),
        (
            'why = "A pre-hook runs before it."',
            "",
            "option A has no `why`; write what is right or wrong about it",
        ),
        ('why = "A pre-hook runs before it."', 'wy = "x"', "option A: unknown key 'wy'; write 'why'"),
        ('text = "forward"', 'text = "a pre-hook"', "option B repeats another option; change its text"),
        ('text = "forward"', "", "option A: 'text' is missing; add it as a text in quotes"),
        ('prompt = "Which runs first?"', 'prompt = " "', "'prompt' is empty; write it"),
        (
            'about = "order',
            'after = "x"\nabout = "order',
            "`after` belongs to a prediction; remove it, or make",
        ),
    ],
)
def test_each_fault_is_one_sentence_with_file_question_and_remedy(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (said,) = faults(tmp_path, (old, new))
    identifier = "ch04-hooks" if new == "ch04-hooks" else "ch05-hooks"
    assert said.startswith(f"ch05_call_protocol.toml, question {identifier}: {words}")
    assert said.endswith(".")
    assert "\n" not in said


def test_a_question_with_one_option_is_no_choice(tmp_path: Path) -> None:
    text = GOOD[: GOOD.rindex("[[question.option]]")].replace("answer = 2", "answer = 1")
    _, said = read_file(write(tmp_path, text))
    assert said == [
        "ch05_call_protocol.toml, question ch05-hooks: 1 option is no choice; "
        "write at least two [[question.option]] tables."
    ]


def test_an_id_used_twice_is_a_fault_of_the_second(tmp_path: Path) -> None:
    found, said = read_file(write(tmp_path, GOOD + GOOD))
    assert len(found) == 1
    assert said == [
        "ch05_call_protocol.toml, question ch05-hooks: this id is used twice; give one of the two another id."
    ]


def test_every_fault_of_a_file_is_said_at_once(tmp_path: Path) -> None:
    said = faults(tmp_path, ("ch05-hooks", "hooks"), ("answer = 2", "answer = 9"), ('"quiz"', '"game"'))
    assert len(said) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[question]]\nid = ", "this is not TOML that can be read"),
        ("[question]\nid = 'x'", "[question] is one table; write [[question]] with two brackets."),
        ("[[questions]]\nid = 'x'", "there is no table called 'questions'; write [[question]]."),
        ("[[question]]", "question number 1: 'id' is missing; add it as a text in quotes."),
    ],
)
def test_a_file_of_another_shape_is_explained(tmp_path: Path, text: str, words: str) -> None:
    found, said = read_file(write(tmp_path, text))
    assert found == []
    assert words in said[0]


def test_a_file_that_is_not_utf8_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "ch05_call_protocol.toml"
    path.write_bytes(b'[[question]]\nid = "\xff"')
    assert read_file(path) == (
        [],
        ["ch05_call_protocol.toml: byte 19 is not UTF-8; save the file as UTF-8."],
    )


def test_loading_a_chapter_with_faults_raises_all_its_sentences(tmp_path: Path) -> None:
    write(tmp_path, GOOD.replace("answer = 2", "answer = 9") + GOOD)
    with pytest.raises(QuestionFileError) as raised:
        load_chapter("ch05", tmp_path)
    assert len(str(raised.value).splitlines()) == 2


def test_two_files_of_one_chapter_are_refused(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, GOOD, "ch05_old.toml")
    with pytest.raises(QuestionFileError, match="ch05 has 2 question files"):
        load_chapter("ch05", tmp_path)


def test_a_fault_in_another_chapter_does_not_stop_this_one(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, "[[question", "ch06_containers.toml")
    assert load_question("ch05-hooks", tmp_path).answer == 2


@pytest.mark.parametrize(
    ("asked", "meant"), [("ch05-hook", "ch05-hooks"), ("ch50-hooks", "ch05-hooks"), ("hooks", "ch05-hooks")]
)
def test_an_unknown_id_suggests_the_nearest(tmp_path: Path, asked: str, meant: str) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(UsageError) as raised:
        load_question(asked, tmp_path)
    assert str(raised.value) == f"No question has the id {asked!r}. Did you mean {meant!r}?"


def test_an_unknown_chapter_names_those_there_are(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(UsageError, match="There are no questions for 'ch5'; the chapters that have some: ch05"):
        load_chapter("ch5", tmp_path)


def test_an_id_that_is_no_text_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="named by its id in quotes"):
        load_question(3)  # type: ignore[arg-type]


def course_files(root: Path) -> list[Path]:
    return sorted((root / "autograder" / "questions").glob("*.toml"))


def test_the_questions_of_the_course_have_no_faults(root: Path) -> None:
    if not course_files(root):
        pytest.skip("no chapter has a question file yet")
    assert [said for path in course_files(root) for said in read_file(path)[1]] == []

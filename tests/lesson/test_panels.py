"""The panels, clicked through their ipywidgets objects."""

from __future__ import annotations

import html
import re
from pathlib import Path

import ipywidgets
import pytest

from autograder.lesson import panel, predict, progress, quiz, recall, wording
from autograder.lesson.questions import load_chapter, load_question
from autograder.messages import UsageError


def said(shown: ipywidgets.HTML) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown.value)).split())


def one(identifier: str):
    return panel.build([load_question(identifier)]).questions[0]


def everything(widget: ipywidgets.Widget) -> list[ipywidgets.Widget]:
    return [widget, *(each for child in getattr(widget, "children", ()) for each in everything(child))]


def test_a_prediction_is_kept_before_anything_is_revealed() -> None:
    asked = one("ch03-expect")
    asked.options.value = 3
    asked.keep_button.click()
    assert said(asked.say) == "Kept: C. Now run the next cell and compare."
    assert progress.first_answers() == {"ch03-expect": {"option": 3, "right": False}}
    assert asked.options.disabled and asked.keep_button.disabled
    assert not asked.compare_button.disabled


def test_comparing_shows_what_happens_why_and_the_question_after() -> None:
    asked = one("ch03-expect")
    asked.options.value = 3
    asked.keep_button.click()
    asked.compare_button.click()
    words = said(asked.say)
    assert words.startswith("What happens: B. tensor([0.2]) : momentum is the share of the new value")
    assert "The old 0.0 keeps 0.9" in words
    assert "You had kept C: tensor([2.0]) : it is simply the mean of the last batch" in words
    assert words.endswith("Explain it: Which line of F.batch_norm 's caller decides how much of the old value stays?")
    assert len(progress.entries()) == 1


def test_a_cell_that_is_run_again_shows_the_prediction_that_was_kept() -> None:
    asked = one("ch03-expect")
    asked.options.value = 3
    asked.keep_button.click()
    again = one("ch03-expect")
    assert again.options.value == 3 and again.options.disabled and again.keep_button.disabled
    assert said(again.say) == "Kept: C. Now run the next cell and compare."
    again.compare_button.click()
    assert said(again.say).startswith("What happens: B.") and len(progress.entries()) == 1


def test_a_prediction_that_came_true_is_said_to_have() -> None:
    asked = one("ch03-expect")
    asked.options.value = 2
    asked.keep_button.click()
    asked.compare_button.click()
    assert said(asked.say).startswith("As you predicted: B.")
    assert progress.first_answers()["ch03-expect"] == {"option": 2, "right": True}


def test_nothing_can_be_compared_before_a_prediction_is_kept() -> None:
    asked = one("ch03-expect")
    assert asked.compare_button.disabled
    asked.compare_button.click()
    assert asked.say.value == ""
    asked.keep_button.click()
    assert said(asked.say) == "Choose what you expect first; a guess is fine."
    assert progress.entries() == []


def test_a_quiz_explains_the_chosen_option_and_lets_one_try_again() -> None:
    asked = one("ch03-persistent")
    asked.answer_button.click()
    assert said(asked.say) == "Choose an option first."
    asked.options.value = 1
    asked.answer_button.click()
    words = said(asked.say)
    assert words.startswith("A does not hold. state_dict() leaves out the names")
    assert words.endswith("Choose another one and answer again.")
    assert "_apply" not in words  # the right option's reason
    asked.options.value = 2
    asked.answer_button.click()
    assert said(asked.say).startswith("B is right. _apply walks _buffers")


def test_only_the_first_answer_of_a_quiz_is_recorded() -> None:
    asked = one("ch03-persistent")
    for number in (1, 2):
        asked.options.value = number
        asked.answer_button.click()
    assert [entry["value"] for entry in progress.entries()] == [{"option": 1, "right": False}]


def test_recall_asks_three_and_each_answers_for_itself() -> None:
    shown = panel.build([each for each in load_chapter("ch03") if each.kind == "recall"])
    first, second, third = shown.questions
    second.options.value = 1
    second.answer_button.click()
    assert said(second.say).startswith("A is right.")
    assert first.say.value == third.say.value == ""
    assert list(progress.first_answers()) == ["ch03-recall-tied"]
    assert "Recall 2 of 3: tied weights" in second.prompt.value


def test_every_control_has_a_name_of_its_own() -> None:
    shown = [
        panel.build([load_question("ch03-expect")]),
        panel.build([load_question("ch03-persistent")]),
        panel.build([each for each in load_chapter("ch03") if each.kind == "recall"]),
    ]
    for each in shown:
        buttons = [widget.description for widget in everything(each) if isinstance(widget, ipywidgets.Button)]
        assert buttons and all(buttons) and len(set(buttons)) == len(buttons)
        for radios in (widget for widget in everything(each) if isinstance(widget, ipywidgets.RadioButtons)):
            names = [label for label, _ in radios.options]
            assert all(re.match(r"[A-Z]\. \S", name) for name in names) and len(set(names)) == len(names)
            assert radios.value is None


def test_answers_are_announced_and_only_answers() -> None:
    asked = one("ch03-persistent")
    assert "role=" not in asked.prompt.value
    asked.options.value = 1
    asked.answer_button.click()
    assert asked.say.value.startswith('<div role="status"')


def test_what_a_question_says_is_escaped() -> None:
    asked = load_question("ch03-persistent")
    assert "<b>gone" not in wording.question_html(asked)
    assert "&lt;b&gt;gone&lt;/b&gt;" in wording.question_html(asked)
    assert "<code>a &lt; b &amp; c</code>" in wording.question_html(asked)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `b` c", "a <code>b</code> c"),
        ("`**kwargs` and **bold**", "<code>**kwargs</code> and <strong>bold</strong>"),
        ("one ` alone", "one ` alone"),
        ("`a` and ` alone", "<code>a</code> and ` alone"),
        ("x < y", "x &lt; y"),
    ],
)
def test_markdown_light(text: str, shown: str) -> None:
    assert wording.inline(text) == shown


def test_a_control_keeps_the_stars_of_code() -> None:
    assert wording.plain("`f(*a, **b)` or `g(**c)` is **not** it") == "f(*a, **b) or g(**c) is not it"


def test_nothing_gives_the_answer_away_before_it_is_given() -> None:
    for asked in load_chapter("ch03"):
        for text in (wording.question_html(asked), wording.question_text(asked)):
            assert not any(option.why and wording.plain(option.why) in wording.plain(text) for option in asked.options)
    widgets = everything(panel.build([load_question("ch03-expect")]))
    states = str([widget.get_state() for widget in widgets])
    assert "The old 0.0 keeps" not in states


def test_a_file_that_cannot_be_written_costs_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(tmp_path / "file" / "progress.jsonl"))
    asked = one("ch03-persistent")
    asked.options.value = 1
    asked.answer_button.click()
    assert said(asked.say).endswith(progress.NOT_KEPT)
    asked.answer_button.click()
    assert progress.NOT_KEPT not in said(asked.say)


def test_panels_have_a_short_repr_without_addresses() -> None:
    assert repr(panel.build([load_question("ch03-expect")])) == "<LessonPanel ch03-expect>"
    assert repr(one("ch03-persistent")) == "<QuizPanel ch03-persistent>"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quiz("ch03-expect"), "'ch03-expect' is a predict question. Write: predict('ch03-expect')"),
        (
            lambda: predict("ch03-persistent"),
            "'ch03-persistent' is a quiz question. Write: quiz('ch03-persistent')",
        ),
        (lambda: quiz("ch03-recall-tied"), "'ch03-recall-tied' is a recall question. Write: recall('ch03')"),
        (
            lambda: quiz("ch03-persist"),
            "No question has the id 'ch03-persist'. Did you mean 'ch03-persistent'?",
        ),
        (lambda: recall("ch04"), "There are no questions for 'ch04'; the chapters that have some: ch03."),
    ],
)
def test_a_wrong_call_says_what_to_write(call, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert str(raised.value) == words


def test_outside_a_notebook_the_question_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    quiz("ch03-persistent")
    printed = capsys.readouterr().out
    assert printed.startswith("Quiz: non-persistent buffers\n")
    assert "  B. Only in the module: it moves with .to() and is not in the file" in printed

"""The live half of a question: ipywidgets controls, and what they answer."""

from __future__ import annotations

from typing import Any

import ipywidgets

from autograder.lesson import progress
from autograder.lesson.questions import Question, letter
from autograder.lesson.style import PANEL_CLASS, panel_style
from autograder.lesson.wording import as_html, inline, option_label, prompt_html

# What was predicted in this kernel, by question: whoever runs a question's cell again, with Shift+Enter from inside the
# panel for instance, finds the prediction as it was kept.
predicted_here: dict[str, int] = {}

_FULL_WIDTH = ipywidgets.Layout(width="auto", max_width="100%")


class _Panel(ipywidgets.VBox):
    """A question with its controls. ``say`` is the place where it answers."""

    def __init__(self, question: Question, position: str = "", **names: Any) -> None:
        self.question = question
        self.prompt = ipywidgets.HTML(prompt_html(question, position))
        # Each control is named by its option's text; without value=None the first option would be chosen.
        self.options = ipywidgets.RadioButtons(
            options=[(option_label(question, number), number) for number in range(1, len(question.options) + 1)],
            value=None,
            layout=_FULL_WIDTH,
        )
        self.say = ipywidgets.HTML()
        self.say.add_class("lesson-say")
        self.remembered = True
        super().__init__([self.prompt, self.options, ipywidgets.HBox(self.buttons(**names)), self.say])
        self.add_class("lesson-question")

    def buttons(self, **names: Any) -> list[ipywidgets.Button]:
        raise NotImplementedError

    def answer(self, body: str, tone: str = "") -> None:
        """Show HTML where a screen reader announces it."""
        note = "" if self.remembered else f"<p>{progress.NOT_KEPT}</p>"
        self.remembered = True  # Said once is enough.
        self.say.value = f'<div role="status" class="lesson-answer {tone}">{body}{note}</div>'

    def keep(self, kind: str, number: int) -> None:
        """Record an answer; the note that it could not be kept comes with the next words shown."""
        value = {"option": number, "right": number == self.question.answer}
        self.remembered = progress.record(kind, self.question.id, value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.strip('_')} {self.question.id}>"


class QuizPanel(_Panel):
    """Choose, answer, read why; choose again as often as you like. The first answer is recorded."""

    def buttons(self, answer_name: str = "Answer") -> list[ipywidgets.Button]:
        self.answered = False
        self.answer_button = ipywidgets.Button(description=answer_name, layout=ipywidgets.Layout(width="auto"))
        self.answer_button.on_click(lambda _: self._answer())
        return [self.answer_button]

    def _answer(self) -> None:
        number = self.options.value
        if number is None:
            self.answer("<p>Choose an option first.</p>")
            return
        if not self.answered:
            self.answered = True
            self.keep("quiz", number)
        why = as_html(self.question.options[number - 1].why)
        if number == self.question.answer:
            self.answer(f"<p><strong>{letter(number)} is right.</strong></p>{why}", "lesson-right")
        else:
            self.answer(
                f"<p><strong>{letter(number)} does not hold.</strong></p>{why}"
                "<p>Choose another one and answer again.</p>",
                "lesson-other",
            )


class PredictPanel(_Panel):
    """Choose and keep a prediction, run the next cell, then compare. Nothing is revealed before that."""

    def buttons(self) -> list[ipywidgets.Button]:
        self.keep_button = ipywidgets.Button(description="Keep my prediction", layout=ipywidgets.Layout(width="auto"))
        self.compare_button = ipywidgets.Button(
            description="I have run it: compare", disabled=True, layout=ipywidgets.Layout(width="auto")
        )
        self.keep_button.on_click(lambda _: self._keep())
        self.compare_button.on_click(lambda _: self._compare())
        return [self.keep_button, self.compare_button]

    def bring_back(self) -> None:
        """Show the prediction that was kept earlier in this kernel, if there is one."""
        number = predicted_here.get(self.question.id)
        if number is not None:
            self.options.value = number
            self._show_kept(number)

    def _keep(self) -> None:
        number = self.options.value
        if number is None:
            self.answer("<p>Choose what you expect first; a guess is fine.</p>")
            return
        self.keep("prediction", number)
        predicted_here[self.question.id] = number
        self.compare_button.disabled = False
        # The button under the reader's finger is switched off next; the keyboard goes on from the other one.
        self.compare_button.focus()
        self._show_kept(number)

    def _show_kept(self, number: int) -> None:
        self.options.disabled = True
        self.compare_button.disabled = False
        self.keep_button.disabled = True
        self.answer(f"<p><strong>Kept: {letter(number)}.</strong> Now run the next cell and compare.</p>")

    def _compare(self) -> None:
        question, number = self.question, self.options.value
        if number is None:
            return
        # This button stays on: switching it off would drop the keyboard's place in the page.
        right = f"{letter(question.answer)}. {inline(question.right.text)}"
        if number == question.answer:
            tone = "lesson-right"
            body = f"<p><strong>As you predicted:</strong> {right}</p>{as_html(question.right.why)}"
        else:
            tone = "lesson-other"
            body = f"<p><strong>What happens:</strong> {right}</p>{as_html(question.right.why)}"
            chosen = question.options[number - 1]
            body += as_html(f"**You had kept {letter(number)}:** {chosen.why or chosen.text}")
        if question.after:
            body += as_html(f"**Explain it:** {question.after}")
        self.answer(body, tone)


class LessonPanel(ipywidgets.VBox):
    """One or more questions in one frame, with the style sheet that they need."""

    def __init__(self, questions: list[_Panel]) -> None:
        self.questions = questions
        # The style sheet travels with the live panel only: a saved page has no use for it.
        style = ipywidgets.HTML(panel_style(), layout=ipywidgets.Layout(display="none"))
        super().__init__([style, *questions])
        self.add_class(PANEL_CLASS)

    def __repr__(self) -> str:
        return f"<LessonPanel {' '.join(each.question.id for each in self.questions)}>"


def build(questions: list[Question]) -> LessonPanel:
    """Return the panel for these questions: several are numbered and all answered like a quiz."""
    if len(questions) == 1 and questions[0].kind == "predict":
        prediction = PredictPanel(questions[0])
        prediction.bring_back()
        return LessonPanel([prediction])
    if len(questions) == 1:
        return LessonPanel([QuizPanel(questions[0])])
    total = len(questions)
    return LessonPanel(
        [
            QuizPanel(question, f"{number} of {total}", answer_name=f"Answer question {number}")
            for number, question in enumerate(questions, start=1)
        ]
    )

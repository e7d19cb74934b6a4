"""``predict``, ``quiz`` and ``recall``: what a notebook calls. Optional, offline, harmless without a reader.

Each shows two outputs. The first is the question as HTML and text, which a saved notebook, an exported page
or a code host can show without a kernel. The second is the live panel. They are two because JupyterLab shows
a widget view, alive or dead, before everything else in its bundle; nbconvert does so where state was saved.
"""

from __future__ import annotations

import os
import sys

from autograder.lesson import progress
from autograder.lesson.questions import Question, chapters, load_chapter, load_question
from autograder.lesson.selection import choose, earlier_chapters
from autograder.lesson.style import STATIC_CLASS, static_style
from autograder.lesson.wording import question_html, question_text
from autograder.messages import UsageError

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WITHOUT_KERNEL = "(Run this cell in JupyterLab to answer here.)"


def predict(id: str) -> None:
    """Show a question about what the next cell will do; the answer is compared once that cell has run.

    Arguments: the id of a question of kind predict.
    Raises UsageError when there is no such question, with the nearest id, or when it is of another kind.
    """
    _show([_of_kind(id, "predict")])


def quiz(id: str) -> None:
    """Show a question that explains each answer and may be answered again.

    Arguments: the id of a question of kind quiz.
    Raises UsageError when there is no such question, with the nearest id, or when it is of another kind.
    """
    _show([_of_kind(id, "quiz")])


def recall(chapter: str) -> None:
    """Show three questions on earlier chapters: what this reader missed there, then the chapter's own.

    Arguments: the chapter that is about to begin, such as ``ch03``.
    Raises UsageError when the chapter has no questions to show.
    """
    own = load_chapter(chapter)
    there = chapters()
    first_answers = progress.first_answers()
    known = {chapter: own}
    if any(value.get("right") is False for value in first_answers.values()):
        known |= {each: load_chapter(each) for each in earlier_chapters(chapter) if each in there}
    chosen = choose(chapter, known, first_answers)
    if not chosen:
        raise UsageError(f"{chapter} has no question of kind recall; add one to its question file.")
    _show(chosen)


def _of_kind(id: str, kind: str) -> Question:
    question = load_question(id)
    if question.kind == "recall" and kind != "recall":
        raise UsageError(f"{id!r} is a recall question. Write: recall({question.chapter!r})")
    if question.kind != kind:
        raise UsageError(f"{id!r} is a {question.kind} question. Write: {question.kind}({id!r})")
    return question


def _show(questions: list[Question]) -> None:
    numbered = [f"{number} of {len(questions)}" for number in range(1, len(questions) + 1)]
    positions = numbered if len(questions) > 1 else [""]
    text = "\n\n".join(map(question_text, questions, positions))
    if not _in_notebook():
        print(text)
        return
    from IPython.display import display

    body = "".join(map(question_html, questions, positions))
    readable = f'{static_style()}<div class="{STATIC_CLASS}">{body}</div>'
    display({"text/plain": text, "text/html": readable}, raw=True)
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        # While a class is graded nobody answers, and a panel takes longer than most cells.
        return
    try:
        from autograder.lesson.panel import build
    except ImportError:
        # Without ipywidgets the question can still be read.
        return
    panel = build(questions)
    view = {"version_major": 2, "version_minor": 0, "model_id": panel.model_id}
    display({"text/plain": WITHOUT_KERNEL, WIDGET_VIEW: view}, raw=True)


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    # A terminal shell shows text only, and has no place for a panel.
    return shell is not None and getattr(shell, "kernel", None) is not None

"""A question as text and as HTML that need no kernel, no script and no style sheet to be read."""

from __future__ import annotations

import html
import re
import textwrap

from autograder.lesson.questions import Question, letter

_HEADINGS = {"predict": "Predict", "quiz": "Quiz", "recall": "Recall"}


def heading(question: Question, position: str = "") -> str:
    """Return the line above a question: its kind, its place among others if any, and what it is about."""
    kind = _HEADINGS[question.kind] if not position else "Recall"
    return f"{kind}{f' {position}' if position else ''}: {question.about}"


def plain(text: str) -> str:
    """Return markdown-light text without its marks, for controls that can only show plain text."""
    return " ".join(re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("`", "").split())


def as_html(text: str) -> str:
    """Return markdown-light text (``code``, **strong**, empty lines between paragraphs) as escaped HTML."""
    paragraphs = [each for each in re.split(r"\n\s*\n", text.strip()) if each]
    return "".join(f"<p>{inline(each)}</p>" for each in paragraphs)


def inline(text: str) -> str:
    """Return one paragraph of markdown-light text as escaped HTML, without the paragraph around it."""
    pieces = text.strip().split("`")
    if len(pieces) % 2 == 0:
        # An odd backtick is one that was meant: the last one is put back.
        pieces[-2:] = ["`".join(pieces[-2:])]
    shown = []
    for index, piece in enumerate(pieces):
        escaped = html.escape(piece)
        shown.append(f"<code>{escaped}</code>" if index % 2 else re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped))
    return "".join(shown)


def prompt_html(question: Question, position: str = "") -> str:
    """Return heading, prompt and code of a question as HTML, without the options."""
    code = f"<pre><code>{html.escape(question.code)}</code></pre>" if question.code else ""
    return f"<p><strong>{html.escape(heading(question, position))}</strong></p>{as_html(question.prompt)}{code}"


def question_html(question: Question, position: str = "") -> str:
    """Return a whole question as HTML, options lettered. The answer is not in it."""
    options = "".join(f"<li>{inline(option.text)}</li>" for option in question.options)
    return f'{prompt_html(question, position)}<ol type="A">{options}</ol>'


def question_text(question: Question, position: str = "") -> str:
    """Return a whole question as plain text, options lettered. The answer is not in it."""
    lines = [heading(question, position), "", question.prompt]
    if question.code:
        lines += ["", textwrap.indent(question.code, "    ")]
    lines.append("")
    lines += [f"  {letter(number)}. {plain(option.text)}" for number, option in enumerate(question.options, start=1)]
    return "\n".join(lines)


def option_label(question: Question, number: int) -> str:
    """Return the label of the control for option ``number`` (from 1): a letter and plain text."""
    return f"{letter(number)}. {plain(question.options[number - 1].text)}"

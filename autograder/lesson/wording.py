"""A question as text and as HTML that need no kernel, no script and no style sheet to be read."""

from __future__ import annotations

import html
import re
import textwrap

from autograder.lesson.questions import Question, letter

_STRONG = re.compile(r"\*\*(.+?)\*\*")
_HEADINGS = {"predict": "Predict", "quiz": "Quiz", "recall": "Recall"}


def heading(question: Question, position: str = "") -> str:
    """Return the line above a question: its kind, its place among others if any, and what it is about."""
    # Questions that come with others open a chapter, whatever they were when they were first asked.
    kind = f"Recall {position}" if position else _HEADINGS[question.kind]
    return f"{kind}: {question.about}"


def plain(text: str) -> str:
    """Return markdown-light text without its marks, for controls that can only show plain text."""
    pieces = _pieces(text)
    shown = (piece if index % 2 else _STRONG.sub(r"\1", piece) for index, piece in enumerate(pieces))
    return " ".join("".join(shown).split())


def as_html(text: str) -> str:
    """Return markdown-light text (``code``, **strong**, empty lines between paragraphs) as escaped HTML."""
    paragraphs = [each for each in re.split(r"\n\s*\n", text.strip()) if each]
    return "".join(f"<p>{inline(each)}</p>" for each in paragraphs)


def inline(text: str) -> str:
    """Return one paragraph of markdown-light text as escaped HTML, without the paragraph around it."""
    return "".join(
        f"<code>{html.escape(piece)}</code>" if index % 2 else _STRONG.sub(r"<strong>\1</strong>", html.escape(piece))
        for index, piece in enumerate(_pieces(text.strip()))
    )


def _pieces(text: str) -> list[str]:
    """Return prose and code in turn; stars inside code are code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        # A backtick without a partner is one that was meant.
        pieces[-2:] = ["`".join(pieces[-2:])]
    return pieces


def prompt_html(question: Question, position: str = "") -> str:
    """Return heading, prompt and code of a question as HTML, without the options."""
    code = f"<pre><code>{html.escape(question.code)}</code></pre>" if question.code else ""
    title = html.escape(heading(question, position))
    return f"<p><strong>{title}</strong></p>{as_html(question.prompt)}{code}"


def question_html(question: Question, position: str = "") -> str:
    """Return a whole question as HTML, options lettered. The answer is not in it."""
    # Not a list: notebook styles number every list 1, 2, 3, and the panel speaks of A, B, C.
    options = "<br>".join(
        f"{letter(number)}. {inline(option.text)}" for number, option in enumerate(question.options, start=1)
    )
    return f"{prompt_html(question, position)}<p>{options}</p>"


def question_text(question: Question, position: str = "") -> str:
    """Return a whole question as plain text, options lettered. The answer is not in it."""
    lines = [heading(question, position), "", question.prompt]
    if question.code:
        lines += ["", textwrap.indent(question.code, "    ")]
    lines.append("")
    lines += [f"  {option_label(question, number)}" for number in range(1, len(question.options) + 1)]
    return "\n".join(lines)


def option_label(question: Question, number: int) -> str:
    """Return the label of the control for option ``number`` (from 1): a letter and plain text."""
    return f"{letter(number)}. {plain(question.options[number - 1].text)}"

"""Answers that are near-identical, after what they may well share has been set aside.

An exercise of ten lines has few right answers, so that two of them may be equal word for word and prove nothing.
What is compared is therefore only what is left of an answer without

- comments, docstrings, and the names that a student chose: renaming changes nothing;
- every line of the stub, of the hint's template (with its gaps filled in any way), and of the chapter's other cells;
- every line that more than half of the class has as well.

The rest is compared token by token with rapidfuzz's Indel distance: the share of both sequences that is not common to
them in the same order. Two are near-identical when their distance is at most a tenth and less than a third of what it
usually is, in this class and exercise, from an answer to the one nearest to it: where everybody writes nearly the same,
even equal answers say nothing. Too short a rest is no evidence, and is not compared.
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

ENOUGH_TOKENS = 80
LARGEST_DISTANCE = 0.1
SHARE_OF_USUAL_DISTANCE = 1 / 3
COMMON_SHARE = 1 / 2
# Below this many answers, what is usual cannot be told; above that many, comparing each with each takes minutes.
FEWEST_FOR_USUAL = 8
MOST_COMPARED = 3000


_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
_KEPT_NAMES = {*keyword.kwlist, *dir(builtins), "self", "torch", "nn", "F"}
_GAP = "..."


@dataclass(frozen=True)
class Line:
    """One logical line of code: its tokens with the student's names made alike, and as they were written."""

    tokens: tuple[str, ...]
    written: tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """Students whose answers to one exercise are alike.

    ``similarity`` is the smallest among the pairs that link them, from 0 to 1; ``tokens`` the length of the shortest
    rest that was compared.
    """

    exercise: str
    students: tuple[str, ...]
    similarity: float
    tokens: int


def near_identical(
    exercise: str, answers: Mapping[str, str], templates: Sequence[str], shared: Sequence[str] = ()
) -> list[Alike]:
    """Return the groups of students whose answers are near-identical, the largest first.

    ``answers`` maps students to source, ``templates`` are texts with gaps (``...``), ``shared`` is code that everybody
    has. Answers that are no Python are compared by the lines that can be read.
    """
    known = {line.tokens for text in (*templates, *shared) for line in code_lines(text)}
    read = {student: code_lines(answer) for student, answer in answers.items()}
    for template in templates:
        # However one student fills a gap, the line is set aside for all: a copy under other names shows it too.
        known |= {tokens for lines in read.values() for tokens in _filled(lines, _gaps(template))}
    lines = {student: [line.tokens for line in own if line.tokens not in known] for student, own in read.items()}
    having = Counter(line for own in lines.values() for line in set(own))
    most = max(2, COMMON_SHARE * len(answers))
    rests = {s: [token for line in own if having[line] <= most for token in line] for s, own in lines.items()}
    rests = {student: rest for student, rest in rests.items() if len(rest) >= ENOUGH_TOKENS}
    links = _links(rests)
    # A text of one's own, with its comments and its spacing, is nobody else's, however many have it.
    links |= _same_text({student: answers[student] for student, own in lines.items() if _tokens(own) >= ENOUGH_TOKENS})
    return [
        Alike(
            exercise,
            tuple(sorted(group)),
            min(similarity for pair, similarity in links.items() if pair[0] in group),
            min(len(rests[student]) if student in rests else _tokens(lines[student]) for student in group),
        )
        for group in _groups(links)
    ]


def _tokens(lines: Iterable[Sequence[str]]) -> int:
    return sum(map(len, lines))


def _links(rests: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float]:
    """Return (student, student) -> similarity for each pair that is alike."""
    students = sorted(rests)
    if len(students) < 2:
        return {}
    numbers: dict[str, int] = {}
    # One character for each different token: rapidfuzz compares texts fastest.
    texts = ["".join(chr(0x100 + numbers.setdefault(t, len(numbers))) for t in rests[s]) for s in students]
    distance = process.cdist(texts, texts, scorer=Indel.normalized_distance, dtype=np.float32)
    np.fill_diagonal(distance, 1.0)
    largest = LARGEST_DISTANCE
    if len(students) >= FEWEST_FOR_USUAL:
        # A distance of zero must not count as less than a third of zero.
        largest = min(largest, np.nextafter(SHARE_OF_USUAL_DISTANCE * float(np.median(distance.min(axis=1))), -1.0))
    pairs = zip(*np.nonzero(np.triu(distance <= largest, 1)), strict=True)
    return {(students[i], students[j]): 1.0 - float(distance[i, j]) for i, j in pairs}


def _same_text(answers: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return a link of similarity 1 between neighbours among those who have the same text, comments and all."""
    holders: dict[str, list[str]] = {}
    for student in sorted(answers):
        if "#" in answers[student]:
            holders.setdefault(answers[student].strip(), []).append(student)
    return {
        pair: 1.0 for group in holders.values() for pair in zip(group, group[1:], strict=False) if pair[0] != pair[1]
    }


def _groups(links: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the students of the links, those connected with each other together."""
    groups: list[set[str]] = []
    for pair in links:
        joined = set(pair).union(*(group for group in groups if group & set(pair)))
        groups = [group for group in groups if not group & joined] + [joined]
    return sorted(groups, key=lambda group: (-len(group), min(group)))


def code_lines(source: str) -> list[Line]:
    """Return the logical lines of Python source, without comments and docstrings, as far as they can be read."""
    lines: list[Line] = []
    tokens: list[str] = []
    written: list[str] = []
    names: dict[str, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(source)).readline):
            if token.type == tokenize.NEWLINE:
                if tokens != ["text"]:  # A docstring is a text that stands alone.
                    lines.append(Line(tuple(tokens), tuple(written)))
                tokens, written, names = [], [], {}
                continue
            if token.type in _SKIPPED:
                continue
            shape = "text" if token.type == tokenize.STRING else token.string
            if token.type == tokenize.NAME and shape not in _KEPT_NAMES and written[-1:] != ["."]:
                shape = names.setdefault(token.string, f"name{len(names)}")
            tokens.append(shape)
            written.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass
    return [line for line in lines if line.tokens]


def _gaps(template: str) -> dict[re.Pattern[str], bool]:
    """Return a pattern for each line of a template with a gap, as it reads with the gap filled in.

    The value says whether the line has a name of its own. One without (``return ...``) is what anybody writes.
    """
    found = {}
    for line in code_lines(template):
        if _GAP in line.written and len(line.written) > 1:
            pattern = re.compile(" ".join(".+" if word == _GAP else re.escape(word) for word in line.written))
            found[pattern] = any(word.isidentifier() and not keyword.iskeyword(word) for word in line.written)
    return found


def _filled(lines: Sequence[Line], gaps: Mapping[re.Pattern[str], bool]) -> Iterator[tuple[str, ...]]:
    """Yield the lines that fill a template's gaps; nameless ones only where two others show that it was used."""
    named = [pattern for pattern, has_name in gaps.items() if has_name]
    filling = [line for line in lines if any(pattern.fullmatch(" ".join(line.written)) for pattern in named)]
    patterns = gaps if len(filling) >= 2 else named
    for line in lines:
        if any(pattern.fullmatch(" ".join(line.written)) for pattern in patterns):
            yield line.tokens

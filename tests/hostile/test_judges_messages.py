"""Observations made by hand: what the judge reads was written by somebody who wants to harm or to deceive it."""

from __future__ import annotations

import json
import pickle

from autograder.grading.transport import LARGEST_MESSAGE
from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32}

# The answer, while it is checked, takes over what writes the check's message, and puts in something of its own.
_SENDER = """
import base64, json, os
real = json.dumps


def dumps(message, **options):
    content = message.get("content") if isinstance(message, dict) else None
    data = content.get("data") if isinstance(content, dict) else None
    kind = "application/vnd.deep-framework-mechanics.observations+json"
    if isinstance(data, dict) and kind in data:
        emission = {{
            "run": os.environ["AUTOGRADER_GRADING_RUN"],
            "exercise": "my_dropout",
            "problem": None,
            "handed": None,
            "records": {{"cpu": base64.b64encode({data}).decode()}},
        }}
        emission.update({more})
        data[kind] = {whole}
    return real(message, **options)


class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        json.dumps = dumps
        raise RuntimeError
"""
_UNREADABLE = "cannot be read"


def _sent(
    name: str, why: str, data: bytes | str = b"", more: str = "{}", whole: str = "emission", says: str = _UNREADABLE
) -> Case:
    source = _SENDER.format(data=data if isinstance(data, str) else repr(data), more=more, whole=whole)
    return Case(name, why, scored(my_dropout=0), {"my_dropout": source}, says=says)


def _framed(text: bytes, blob: bytes | None = None) -> bytes:
    blob = (2).to_bytes(8, "little") + b"{}" if blob is None else blob
    return len(text).to_bytes(8, "big") + text + blob


def _observing(value: object, blob: bytes | None = None) -> bytes:
    record = {"case": "c", "observations": [["a", value, None]], "stop": None, "printed": "", "warned": []}
    return _framed(json.dumps([record]).encode(), blob)


def _blob(header: dict | bytes, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


class _Harm:
    def __reduce__(self) -> tuple:
        return (exec, ("raise SystemExit('a pickle was loaded')",))


_TENSOR = {"tensor": 0, "dtype": "float32", "shape": [1], "device": "cpu"}
_LINE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
_WHY = "The judge checks every length, name and type before it uses it."

CASES = [
    _sent("a_pickle", "The judge loads no pickles.", pickle.dumps(_Harm())),
    _sent("a_pickle_in_a_frame", "The judge loads no pickles.", _framed(pickle.dumps(_Harm()))),
    _sent("a_pickle_for_a_tensor", "The judge loads no pickles.", _observing(_TENSOR, pickle.dumps(_Harm()))),
    _sent("a_checkpoint_of_torch", "The judge calls no torch.load.", b"PK\x03\x04" + b"\0" * 200),
    _sent("nothing", _WHY),
    _sent("a_length_beyond_the_end", _WHY, (2**63).to_bytes(8, "big") + b"[]"),
    _sent("a_header_beyond_the_end", _WHY, _framed(b"[]", (2**63 - 1).to_bytes(8, "little"))),
    _sent("a_tower_of_lists", _WHY, _framed(b"[" * 500_000 + b"]" * 500_000)),
    _sent("not_a_number", _WHY, _framed(b"[NaN]")),
    _sent("an_infinite_number", _WHY, _framed(b"[1e999]")),
    _sent("a_number_of_a_million_digits", _WHY, "b'\\0\\0\\0\\0\\0\\x0f\\x42\\x42[' + b'9' * 1_000_000 + b']'"),
    _sent("a_name_twice", _WHY, _framed(b'[{"case": "a", "case": "b"}]')),
    _sent(
        "tensors_that_overlap",
        _WHY,
        _observing(
            [_TENSOR, {**_TENSOR, "tensor": 1}], _blob({"0": _LINE, "1": {**_LINE, "data_offsets": [2, 6]}}, b"123456")
        ),
    ),
    _sent("a_tensors_name_twice", _WHY, _observing(_TENSOR, _blob(b'{"0": {}, "0": {}}', b"1234"))),
    _sent("a_tensor_beyond_memory", _WHY, _observing(_TENSOR, _blob({"0": {**_LINE, "shape": [2**39, 0]}}, b"1234"))),
    _sent(
        "a_shape_that_overflows",
        _WHY,
        _observing(_TENSOR, _blob({"0": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}, b"")),
    ),
    _sent("a_tensor_used_twice", _WHY, _observing([_TENSOR, _TENSOR], _blob({"0": _LINE}, b"1234"))),
    _sent(
        "metadata_in_the_tensors", _WHY, _observing(_TENSOR, _blob({"0": _LINE, "__metadata__": {"a": "b"}}, b"1234"))
    ),
    _sent("half_a_character", _WHY, _observing("\ud800")),
    _sent("a_value_that_asks_to_be_run", _WHY, _observing({"exec": "import os"})),
    _sent("too_many_values", _WHY, _observing([0] * 150_000)),
    _sent("more_than_a_message_may_have", _WHY, f"b'\\0' * {LARGEST_MESSAGE + 1000}"),
    _sent(
        "more_than_a_line_may_have",
        "A line that long is cut away, and nothing has arrived.",
        "b'\\0' * 30_000_000",
        says="No observations of my_dropout arrived",
    ),
    _sent("other_cases_than_asked_for", "The judge knows which cases there are.", _observing(1)),
    _sent("no_records", "The judge knows which devices there are.", more="{'records': {}}"),
    _sent("records_that_are_a_number", _WHY, more="{'records': {'cpu': 5}}"),
    _sent("records_that_are_no_base64", _WHY, more="{'records': {'cpu': '***'}}"),
    _sent("another_run", "An emission carries its run's number.", more="{'run': '0' * 32}", says="in this run"),
    _sent(
        "another_exercise", "An emission names its exercise.", more="{'exercise': 'my_batchnorm'}", says="by this check"
    ),
    _sent("a_score_of_its_own", "An emission has no score.", more="{'score': 1.0, 'passed': True}"),
    _sent("a_problem_that_is_a_page", "A sentence is text of one line.", more="{'problem': 'a\\n' * 100}"),
    _sent("a_list_instead", _WHY, whole="[emission]"),
    _sent("a_text_instead", _WHY, whole="json.dumps(emission)"),
    _sent("a_float_instead", _WHY, whole="3.0"),
    _sent(
        "a_problem_with_markup",
        "What is shown of it is escaped.",
        more="{'problem': '<script>alert(1)</script>'}",
        says="&lt;script&gt;",
    ),
    Case(
        "lines_past_the_kernel",
        "What is no message is dropped, and a message that is complete is one more output.",
        scored(my_dropout=0),
        {
            "my_dropout": "import json, os\nname = get_ipython().parent_header['header']['msg_id']\n"
            "for line in ('hello', '5', '[' * 100_000, 'null', '{}', json.dumps({'parent': name, 'type': 'stream'})):\n"
            "    os.write(3, (line + chr(10)).encode())\n"
            "os.write(3, bytes(range(256)) * 100 + chr(10).encode())\n"
            "class MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n        raise RuntimeError\n"
        },
    ),
    Case(
        "a_reply_of_its_own",
        "Who says that a cell is done before it is done has only ended the waiting for it.",
        scored(my_dropout=0),
        {
            "my_dropout": "import json, os\nname = get_ipython().parent_header['header']['msg_id']\n"
            "for kind, content in (('execute_reply', {'status': 'ok', 'execution_count': 3}),\n"
            "                      ('execute_result', {'data': {'text/plain': '3.0'}, 'metadata': {}, 'execution_count': 4}),\n"
            "                      ('status', {'execution_state': 'idle'})):\n"
            "    line = {'parent': name, 'type': kind, 'content': content, 'metadata': {}}\n"
            "    os.write(3, (json.dumps(line) + chr(10)).encode())\n"
            "class MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n        raise RuntimeError\n"
        },
    ),
    Case(
        "a_report_in_the_judges_words",
        "What an answer prints while it is checked is quoted as what it printed.",
        scored(),
        {
            "my_dropout": RIGHT_DROPOUT.replace(
                "        self.p = p", "        self.p = p\n        print('✗ my_batchnorm: 0.00 of 4 points')"
            )
        },
    ),
    Case(
        "names_with_markup",
        "Everything that comes from a submission is escaped.",
        scored(my_dropout=0),
        {
            "my_dropout": "class MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n"
            "        raise type('<script>alert(2)</script>', (Exception,), {})('<img src=x onerror=alert(3)>')\n"
        },
    ),
]


class TestJudgesMessages(Family):
    """Malformed, deceiving or harmful: nothing of it scores, and the judge goes on."""

    def test_no_markup_of_theirs_is_in_a_page(self, graded: GradedClass) -> None:
        """Neither as an element nor as an attribute."""
        for name in ("a_problem_with_markup", "names_with_markup"):
            text = graded.text(name)
            page = text[text.find('"text/html"') :]
            assert "<script>alert" not in page.split('"text/plain"')[0]

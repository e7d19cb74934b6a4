"""Records cross as bytes unchanged, and hostile bytes give one clear error and never another."""

from __future__ import annotations

import json
import random

import pytest
import torch

from autograder.evaluation import reference_records
from autograder.grading import transport
from autograder.grading.transport import TransportError, pack, unpack
from autograder.observe import Observation, Record, Stop
from autograder.registry import exercise_names
from autograder.snapshot import Other, Raised, TensorSnapshot, snapshot


def _same(one: object, other: object) -> bool:
    if isinstance(one, TensorSnapshot) and isinstance(other, TensorSnapshot):
        if (one.dtype, one.shape, one.device) != (other.dtype, other.shape, other.device):
            return False
        if one.values is None or other.values is None:
            return one.values is other.values
        equal = one.values == other.values
        return bool((equal | ((one.values != one.values) & (other.values != other.values))).all())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and (one == other or one != one)


VALUES = [
    None,
    True,
    7,
    -0.5,
    float("nan"),
    float("-inf"),
    "wörds",
    [1, [2.0, "x"]],
    {"a": torch.ones(2), "b": {"c": []}},
    torch.tensor(3),
    torch.zeros(0, 3),
    torch.tensor([float("nan"), 1.0]),
    torch.tensor([True, False]),
    torch.ones(3, 2).t(),
    torch.tensor([1 + 2j]),
    torch.tensor([1 + 2j], dtype=torch.complex128).conj(),
    torch.ones(2, dtype=torch.bfloat16),
    torch.empty(2, device="meta"),
    Raised("ValueError", ("Exception",)),
    pytest.param(object(), id="an object"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value)[:30])
def test_a_value_comes_back_as_it_was(value: object) -> None:
    kept = snapshot(value)
    record = Record("case", [Observation("seen", kept, 0.5)], Stop("E", "m", 3, "x = 1", False), "said", ["warned"])
    (back,) = unpack(pack([record]))
    assert _same(back.observations[0].value, kept)
    assert (back.case, back.stop, back.printed, back.warned) == (
        record.case,
        record.stop,
        record.printed,
        record.warned,
    )
    assert back.observations[0].tolerance == 0.5


@pytest.mark.parametrize("name", exercise_names())
def test_the_references_records_come_back_as_they_were(name: str) -> None:
    _, records = reference_records(name, 0, "cpu")
    back = unpack(pack(records))
    assert len(back) == len(records)
    for one, other in zip(records, back, strict=True):
        assert one.case == other.case
        assert [entry.name for entry in one.observations] == [entry.name for entry in other.observations]
        assert all(_same(a.value, b.value) for a, b in zip(one.observations, other.observations, strict=True))


def test_what_no_file_can_hold_is_replaced_before_it_is_sent() -> None:
    record = Record("c", [Observation("a", "\ud800"), Observation("b", 10**5000), Observation("c", Other("x" * 10**6))])
    seen = unpack(pack([record]))[0].observations
    assert seen[0].value == "?"
    assert seen[1].value == Other("int of more than 63 bits")
    assert len(seen[2].value.type_name) == transport.LONGEST_STRING


def _framed(text: bytes, blob: bytes | None = None) -> bytes:
    blob = (2).to_bytes(8, "little") + b"{}" if blob is None else blob
    return len(text).to_bytes(8, "big") + text + blob


def _observing(value: object, blob: bytes | None = None) -> bytes:
    record = {"case": "c", "observations": [["a", value, None]], "stop": None, "printed": "", "warned": []}
    return _framed(json.dumps([record]).encode(), blob)


def _blob(header: dict | bytes, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


_TENSOR = {"tensor": 0, "dtype": "float32", "shape": [1], "device": "cpu"}
_LINE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
HOSTILE = {
    "nothing": b"",
    "a length beyond the end": (2**63).to_bytes(8, "big") + b"[]",
    "no tensors": _framed(b"[]", b""),
    "a pickle": b"\x80\x04\x95" + b"x" * 100,
    "not UTF-8": _framed(b"\xff\xfe"),
    "not JSON": _framed(b"[{"),
    "a tower of lists": _framed(b"[" * 1_000_000 + b"]" * 1_000_000),
    "a tower of values": _observing(json.loads("[" * 500 + "]" * 500)),
    "NaN": _framed(b"[NaN]"),
    "a long integer": _framed(b"[" + b"9" * 5000 + b"]"),
    "an integer beyond 63 bits": _observing(2**64),
    "an infinite number": _framed(json.dumps([]).encode().replace(b"[]", b"[1e999]")),
    "a name twice": _framed(b'[{"case": "a", "case": "b"}]'),
    "half a character": _observing("\ud800"),
    "a long text": _observing("x" * 30_000),
    "an unknown kind": _observing({"exec": "import os"}),
    "a record without fields": _framed(b"[{}]"),
    "a dictionary key twice": _observing({"dict": [["a", 1], ["a", 2]]}),
    "a tensor that is not there": _observing(_TENSOR),
    "a tensor that is used twice": _observing([_TENSOR, _TENSOR], _blob({"0": _LINE}, b"1234")),
    "a tensor that nobody uses": _observing(1, _blob({"0": _LINE}, b"1234")),
    "tensors that overlap": _observing(
        [_TENSOR, {**_TENSOR, "tensor": 1}], _blob({"0": _LINE, "1": {**_LINE, "data_offsets": [2, 6]}}, b"123456")
    ),
    "a gap": _observing(_TENSOR, _blob({"0": {**_LINE, "data_offsets": [4, 8]}}, b"12345678")),
    "bytes after the last tensor": _observing(_TENSOR, _blob({"0": _LINE}, b"12345")),
    "a shape that does not fit": _observing(_TENSOR, _blob({"0": {**_LINE, "shape": [2]}}, b"1234")),
    "a shape beyond memory": _observing(_TENSOR, _blob({"0": {**_LINE, "shape": [2**39, 0]}}, b"1234")),
    "an empty tensor of enormous shape": _observing(
        {**_TENSOR, "shape": [2**39, 2**39, 0]},
        _blob({"0": {"dtype": "F32", "shape": [2**39, 2**39, 2**39, 0], "data_offsets": [0, 0]}}, b""),
    ),
    "negative offsets": _observing(_TENSOR, _blob({"0": {**_LINE, "data_offsets": [-4, 0]}}, b"1234")),
    "an unknown dtype": _observing(_TENSOR, _blob({"0": {**_LINE, "dtype": "F4"}}, b"1234")),
    "a dtype that is a list": _observing(_TENSOR, _blob({"0": {**_LINE, "dtype": []}}, b"1234")),
    "a tensor's name twice": _observing(_TENSOR, _blob(b'{"0": 1, "0": 2}', b"1234")),
    "a tensor by another name": _observing(_TENSOR, _blob({"00": _LINE}, b"1234")),
    "metadata": _observing(_TENSOR, _blob({"0": _LINE, "__metadata__": {"a": "b"}}, b"1234")),
    "a bool that is two": _observing(
        {**_TENSOR, "dtype": "bool"}, _blob({"0": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\x02")
    ),
    "another dtype than said": _observing({**_TENSOR, "dtype": "int32"}, _blob({"0": _LINE}, b"1234")),
    "too many values": _observing([0] * 200_000),
    "too many bytes": b"\x00" * (transport.LARGEST_MESSAGE + 1),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_give_one_clear_error(data: bytes) -> None:
    with pytest.raises(TransportError) as caught:
        unpack(data)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_damaged_bytes_never_give_another_error() -> None:
    data = pack([Record("c", [Observation("a", snapshot([torch.arange(3.0), {"k": torch.tensor(True)}, 1.5]))])])
    chance = random.Random(5)
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        try:
            unpack(bytes(damaged))
        except TransportError:
            pass

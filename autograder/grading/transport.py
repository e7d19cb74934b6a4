"""Records to bytes and back, as JSON and safetensors: what a student's process may say, and nothing that can run.

The bytes are the length of a JSON text (eight bytes), the text, and a safetensors file with the tensors it refers to
by number. Whoever reads them trusts nothing: every length, name and type is checked before it is used, and whatever
is wrong gives a TransportError with one sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors_of_torch

from autograder.observe import Observation, Record, Stop
from autograder.snapshot import LARGEST_TENSOR, Other, Raised, TensorSnapshot

LARGEST_MESSAGE = 8_000_000
LARGEST_TEXT = 4_000_000
MOST_VALUES = 100_000
MOST_TENSORS = 20_000
MOST_DIMENSIONS = 16
DEEPEST = 12
LONGEST_STRING = 5_000
_LENGTH = 8
_LARGEST_INTEGER = 2**63

# The dtypes that cross as they are, by the name that safetensors gives them, with their size in bytes.
_DTYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
_PLAIN = {name for name, _ in _DTYPES.values()}
# Complex tensors cross as pairs of real numbers.
_COMPLEX = {"complex64": "float32", "complex128": "float64"}


class TransportError(ValueError):
    """The bytes are not what ``pack`` makes; the sentence says what is wrong with them."""


def pack(records: Sequence[Record]) -> bytes:
    """Return records as bytes. Raises TransportError when they are larger than a judge accepts."""
    tensors: list[torch.Tensor] = []
    text = json.dumps([_record_out(record, tensors) for record in records], allow_nan=False).encode()
    named = {str(index): tensor for index, tensor in enumerate(tensors)}
    blob = safetensors_of_torch.save(named)
    if len(text) > LARGEST_TEXT or _LENGTH + len(text) + len(blob) > LARGEST_MESSAGE or len(tensors) > MOST_TENSORS:
        _refuse("the observations are larger than the judge accepts")
    return len(text).to_bytes(_LENGTH, "big") + text + blob


def unpack(data: bytes) -> list[Record]:
    """Return the records that ``pack`` wrote. Raises TransportError, and nothing else, for any other bytes."""
    if len(data) > LARGEST_MESSAGE:
        _refuse(f"the message has {len(data)} bytes, and {LARGEST_MESSAGE} are allowed")
    if len(data) < _LENGTH:
        _refuse("the message is cut short")
    length = int.from_bytes(data[:_LENGTH], "big")
    if length > min(LARGEST_TEXT, len(data) - _LENGTH):
        _refuse("the length of the text does not fit the message")
    entries = _json(data[_LENGTH : _LENGTH + length])
    reader = _Reader(_tensors(data[_LENGTH + length :]))
    records = [reader.record(entry) for entry in _typed(entries, list, "the list of records")]
    if len(reader.used) != len(reader.tensors):
        _refuse("a tensor is not used by any observation")
    return records


def _refuse(sentence: str) -> NoReturn:
    raise TransportError(f"{sentence}.") from None


def _record_out(record: Record, tensors: list[torch.Tensor]) -> dict[str, Any]:
    stop = record.stop
    return {
        "case": _text_out(record.case),
        "observations": [
            [_text_out(entry.name), _value_out(entry.value, tensors), _tolerance_out(entry.tolerance)]
            for entry in record.observations
        ],
        "stop": None
        if stop is None
        else {
            "type_name": _text_out(stop.type_name),
            "message": _text_out(stop.message),
            "line": stop.line if type(stop.line) is int and 0 <= stop.line < _LARGEST_INTEGER else None,
            "text": None if stop.text is None else _text_out(stop.text),
            "out_of_time": bool(stop.out_of_time),
        },
        "printed": _text_out(record.printed),
        "warned": [_text_out(text) for text in record.warned],
    }


def _tolerance_out(tolerance: float | None) -> float | None:
    return None if tolerance is None else float(tolerance)


def _text_out(text: str) -> str:
    # Half of a surrogate pair is a Python string that no file can hold.
    return str(text)[:LONGEST_STRING].encode("utf-8", "replace").decode()


def _value_out(value: Any, tensors: list[torch.Tensor]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text_out(value)
    if isinstance(value, int):
        return value if abs(value) < _LARGEST_INTEGER else {"other": "int of more than 63 bits"}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, TensorSnapshot):
        return _tensor_out(value, tensors)
    if isinstance(value, Raised):
        return {"raised": _text_out(value.type_name), "bases": [_text_out(base) for base in value.bases]}
    if isinstance(value, list):
        return [_value_out(item, tensors) for item in value]
    if isinstance(value, dict):
        return {"dict": [[_text_out(key), _value_out(item, tensors)] for key, item in value.items()]}
    return {"other": _text_out(value.type_name if isinstance(value, Other) else type(value).__name__)}


def _tensor_out(value: TensorSnapshot, tensors: list[torch.Tensor]) -> dict[str, Any]:
    number = None
    if value.values is not None and value.dtype in _PLAIN | set(_COMPLEX):
        values = torch.view_as_real(value.values.resolve_conj()) if value.dtype in _COMPLEX else value.values
        number = len(tensors)
        # A copy of its own: safetensors refuses tensors that share memory.
        tensors.append(values.detach().clone(memory_format=torch.contiguous_format))
    return {"tensor": number, "dtype": value.dtype, "shape": list(value.shape), "device": value.device}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        _refuse("a name is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    _refuse(f"{name} is not a number in JSON")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except TransportError:
        raise
    except (ValueError, RecursionError):
        _refuse("the text is not JSON")


def _typed(value: Any, kind: type, what: str) -> Any:
    if type(value) is not kind:
        _refuse(f"{what} is not a {kind.__name__}")
    return value


def _tensors(blob: bytes) -> dict[str, torch.Tensor]:
    """Check every line of a safetensors header, then let safetensors read it."""
    if len(blob) < _LENGTH:
        _refuse("the tensors are cut short")
    length = int.from_bytes(blob[:_LENGTH], "little")
    if length > min(LARGEST_TEXT, len(blob) - _LENGTH):
        _refuse("the header of the tensors does not fit the message")
    header = _typed(_json(blob[_LENGTH : _LENGTH + length]), dict, "the header of the tensors")
    if len(header) > MOST_TENSORS:
        _refuse("there are more tensors than the judge accepts")
    body = memoryview(blob)[_LENGTH + length :]
    spans = sorted(_span(name, entry, len(header), body) for name, entry in header.items())
    end = 0
    for start, stop in spans:
        if start != end:
            _refuse("the tensors overlap or leave gaps")
        end = stop
    if end != len(body):
        _refuse("there are bytes after the last tensor")
    try:
        return safetensors_of_torch.load(blob)
    except (SafetensorError, ValueError, RuntimeError, KeyError, TypeError):
        _refuse("safetensors cannot read the tensors")


def _span(name: str, entry: Any, count: int, body: memoryview) -> tuple[int, int]:
    if not (name.isascii() and name.isdigit() and len(name) < 8 and str(int(name)) == name and int(name) < count):
        _refuse("a tensor has a name that is not its number")
    entry = _typed(entry, dict, "a tensor's description")
    if set(entry) != {"dtype", "shape", "data_offsets"} or entry["dtype"] not in tuple(_DTYPES):
        _refuse("a tensor's description is not one of ours")
    shape, offsets = _sizes(entry["shape"]), _sizes(entry["data_offsets"])
    count_of_values = math.prod(shape)
    if len(offsets) != 2 or offsets[1] > len(body) or count_of_values > 2 * LARGEST_TENSOR:
        _refuse("a tensor is larger than its bytes")
    start, stop = offsets
    if stop - start != count_of_values * _DTYPES[entry["dtype"]][1]:
        _refuse("a tensor's bytes do not fit its shape")
    if entry["dtype"] == "BOOL" and any(body[start:stop].tobytes().translate(None, b"\x00\x01")):
        _refuse("a bool is neither true nor false")
    return start, stop


def _sizes(value: Any) -> list[int]:
    sizes = _typed(value, list, "a tensor's shape")
    if len(sizes) > MOST_DIMENSIONS or not all(type(size) is int and 0 <= size < 2**40 for size in sizes):
        _refuse("a tensor's shape is not one that a tensor can have")
    return sizes


class _Reader:
    """Builds records from checked JSON, counting what it has made."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors = tensors
        self.used: set[int] = set()
        self.count = 0

    def record(self, entry: Any) -> Record:
        entry = self.fields(entry, {"case", "observations", "stop", "printed", "warned"})
        return Record(
            self.text(entry["case"]),
            [self.observation(item) for item in _typed(entry["observations"], list, "the list of observations")],
            None if entry["stop"] is None else self.stop(entry["stop"]),
            self.text(entry["printed"]),
            [self.text(item) for item in _typed(entry["warned"], list, "the list of warnings")],
        )

    def observation(self, item: Any) -> Observation:
        if type(item) is not list or len(item) != 3:
            _refuse("an observation is not a name, a value and a tolerance")
        name, value, tolerance = item
        if tolerance is not None and type(tolerance) not in (int, float):
            _refuse("a tolerance is not a number")
        return Observation(self.text(name), self.value(value), tolerance)

    def stop(self, entry: Any) -> Stop:
        entry = self.fields(entry, {"type_name", "message", "line", "text", "out_of_time"})
        line, text = entry["line"], entry["text"]
        if line is not None and (type(line) is not int or not 0 <= line < _LARGEST_INTEGER):
            _refuse("a line number is not a number")
        return Stop(
            self.text(entry["type_name"]),
            self.text(entry["message"]),
            line,
            None if text is None else self.text(text),
            _typed(entry["out_of_time"], bool, "out_of_time"),
        )

    def value(self, value: Any, depth: int = 0) -> Any:
        self.count += 1
        if self.count > MOST_VALUES or depth > DEEPEST:
            _refuse("there are more values than the judge accepts")
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return self.text(value)
        if type(value) is int:
            if abs(value) >= _LARGEST_INTEGER:
                _refuse("an integer is larger than 63 bits")
            return value
        if type(value) is float:
            if not math.isfinite(value):
                _refuse("a number is not finite")
            return value
        if type(value) is list:
            return [self.value(item, depth + 1) for item in value]
        return self.tagged(_typed(value, dict, "a value"), depth)

    def tagged(self, value: dict[str, Any], depth: int) -> Any:
        if set(value) == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        if set(value) == {"other"}:
            return Other(self.text(value["other"]))
        if set(value) == {"raised", "bases"}:
            bases = _typed(value["bases"], list, "the list of bases")
            return Raised(self.text(value["raised"]), tuple(self.text(base) for base in bases))
        if set(value) == {"dict"}:
            return self.dictionary(value["dict"], depth)
        if set(value) == {"tensor", "dtype", "shape", "device"}:
            return self.tensor(value)
        _refuse("a value is of no kind that the judge knows")

    def dictionary(self, pairs: Any, depth: int) -> dict[str, Any]:
        pairs = _typed(pairs, list, "a dictionary's list of pairs")
        if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
            _refuse("a dictionary's entry is not a pair")
        return _unique([(self.text(key), self.value(item, depth + 1)) for key, item in pairs])

    def tensor(self, value: dict[str, Any]) -> TensorSnapshot:
        dtype, device = self.text(value["dtype"]), self.text(value["device"])
        shape, number = tuple(_sizes(value["shape"])), value["tensor"]
        if number is None:
            return TensorSnapshot(None, dtype, shape, device)
        if type(number) is not int or str(number) not in self.tensors or number in self.used:
            _refuse("a tensor is used twice or is not there")
        self.used.add(number)
        values = self.tensors[str(number)]
        if dtype in _COMPLEX:
            if values.shape[-1:] != (2,) or str(values.dtype) != f"torch.{_COMPLEX[dtype]}":
                _refuse("a complex tensor is not made of pairs")
            values = torch.view_as_complex(values.contiguous())
        if str(values.dtype) != f"torch.{dtype}" or tuple(values.shape) != shape:
            _refuse("a tensor is not what its observation says")
        return TensorSnapshot(values, dtype, shape, device)

    def fields(self, entry: Any, names: set[str]) -> dict[str, Any]:
        self.count += 1
        if type(entry) is not dict or set(entry) != names:
            _refuse("a record or a stop does not have the fields it should")
        return entry

    def text(self, value: Any) -> str:
        self.count += 1
        if self.count > MOST_VALUES:
            _refuse("there are more values than the judge accepts")
        if type(value) is not str or len(value) > LONGEST_STRING:
            _refuse("a text is not a text, or too long")
        if any("\ud800" <= character <= "\udfff" for character in value):
            _refuse("a text holds half of a character")
        return value

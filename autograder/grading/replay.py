"""Running a notebook's cells in the sandbox, and rebuilding its outputs with nbclient, as nbgrader would have them."""

from __future__ import annotations

import base64
import binascii
import contextlib
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from nbclient.exceptions import CellControlSignal
from nbformat import NotebookNode
from nbformat.v4 import nbbase, new_output
from nbgrader.preprocessors import Execute

from autograder.grading.sandbox import Ending, Sandbox
from autograder.grading.ticket import (
    GRADING_DEVICES_VARIABLE,
    GRADING_RUN_VARIABLE,
    GRADING_SEED_VARIABLE,
    Ticket,
)

_OUTPUTS = {"stream", "display_data", "update_display_data", "execute_result", "error"}
_SECRETS = (GRADING_SEED_VARIABLE, GRADING_RUN_VARIABLE, GRADING_DEVICES_VARIABLE)


class _NobodyListens:
    """Stands where nbclient expects a kernel's client: what a widget would send back goes nowhere."""

    def __init__(self) -> None:
        self.session = SimpleNamespace(msg=lambda *details, **options: {})
        self.shell_channel = SimpleNamespace(send=lambda message: None)


def run_cells(
    notebook: NotebookNode, sandbox: Sandbox, files: list[tuple[str, bytes]], ticket: Ticket
) -> tuple[str | None, dict[str, Any]]:
    """Execute a notebook in place. Return why cells were left out (None: all were run), and what the run has used.

    Raises SandboxError when the sandbox itself is gone.
    """
    from autograder.grading.judge import is_graded

    client = Execute()
    client.nb, client.kc = notebook, _NobodyListens()
    client.reset_execution_trackers()
    notebook.metadata["language_info"] = dict(sandbox.language_info)
    unfinished, usage, counted = None, {}, 0
    with _outputs_as_they_come(), sandbox.submission(files) as run:
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            counted += 1
            client.code_cells_executed += 1
            cell.outputs, cell.execution_count = [], None
            client.clear_before_next_output = False
            if unfinished is None:
                ending = _run_cell(client, run, cell, index, ticket.environment() if is_graded(cell) else {})
                if ending.dead:
                    unfinished = f"Not run: in code cell {counted} {ending.dead}."
            usage = run.usage
    client.set_widgets_metadata()
    return unfinished, usage or run.usage


@contextlib.contextmanager
def _outputs_as_they_come() -> Iterator[None]:
    """Keep nbformat from holding each output against the schema, which takes longer than making it: messages are
    looked through when they arrive, and the executed notebook is validated as a whole.
    """
    validate = nbbase.validate
    nbbase.validate = lambda *parts, **options: None
    try:
        yield
    finally:
        nbbase.validate = validate


def _run_cell(client: Execute, run: Any, cell: NotebookNode, index: int, environment: dict[str, str]) -> Ending:
    name = uuid.uuid4().hex

    def receive(message: dict[str, Any]) -> None:
        if (shaped := as_kernel_message(message, name)) is None:
            return
        try:
            client.process_message(shaped, cell, index)
        except CellControlSignal:
            return
        except Exception as error:  # A widget's message with parts missing, say; it is the student's loss alone.
            client.log.debug("dropped a message of type %s: %s", message["type"], error)

    ending = run.execute(cell.source, name, environment, receive, _SECRETS)
    if ending.timed_out and not ending.dead:
        ending.reply = {**client.error_on_timeout, "status": "error"}
    if ending.reply is not None and _is_reply(ending.reply):
        client.on_cell_executed(cell=cell, execute_reply={"content": ending.reply})
    if ending.dropped:
        text = f"More than {run.limits.output >> 20} MB or {run.limits.messages} outputs: the rest was dropped.\n"
        cell.outputs.append(new_output("stream", name="stderr", text=text))
    if ending.dead:
        said = f"The cell was not finished: {ending.dead}."
        cell.outputs.append(new_output("error", ename="DeadKernelError", evalue=said, traceback=[said]))
    return ending


def _is_reply(reply: dict[str, Any]) -> bool:
    if reply.get("status") != "error":
        return reply.get("status") in ("ok", "aborted")
    return _are_texts(reply.get("ename"), reply.get("evalue")) and _are_lines(reply.get("traceback"))


def as_kernel_message(message: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return a line from the sandbox in the form that nbclient takes, or None when its parts are not as they should."""
    kind, content = message["type"], message["content"]
    if kind in _OUTPUTS and not _is_output(kind, content):
        return None
    if kind not in _OUTPUTS and kind not in ("clear_output", "execute_input") and not kind.startswith("comm_"):
        return None
    if not isinstance(content.get("execution_count", 0), (int, type(None))):
        return None
    buffers = message.get("buffers") or []
    try:
        decoded = [base64.b64decode(buffer) for buffer in buffers]
    except (TypeError, ValueError, binascii.Error):
        return None
    return {
        "msg_type": kind,
        "header": {"msg_type": kind},
        "parent_header": {"msg_id": name},
        "content": content,
        "metadata": message["metadata"],
        "buffers": decoded,
    }


def _is_output(kind: str, content: dict[str, Any]) -> bool:
    if kind == "stream":
        return content.get("name") in ("stdout", "stderr") and _are_texts(content.get("text"))
    if kind == "error":
        return _are_texts(content.get("ename"), content.get("evalue")) and _are_lines(content.get("traceback"))
    data, metadata, transient = content.get("data"), content.get("metadata"), content.get("transient")
    if not isinstance(data, dict) or not isinstance(metadata, dict) or not isinstance(transient, (dict, type(None))):
        return False
    if transient and not isinstance(transient.get("display_id", ""), str):
        return False
    # Only types that say they are JSON hold anything but text.
    return all(_are_texts(value) or kind.endswith("json") for kind, value in data.items())


def _are_texts(*values: Any) -> bool:
    return all(isinstance(value, str) and not _is_broken(value) for value in values)


def _are_lines(values: Any) -> bool:
    return isinstance(values, list) and _are_texts(*values)


def _is_broken(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, which no file can store."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False

"""ipykernel without sockets: one cell at a time, its messages written as lines of JSON.

It is IPython's own kernel, so that what it sends is what a notebook server would get. It has no threads and no
network, which is what makes it possible to fork a process that holds it.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import io
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from ipykernel.eventloops import enable_gui
from ipykernel.ipkernel import IPythonKernel
from ipykernel.jsonutil import json_clean
from jupyter_client.session import Session
from traitlets import Any as AnyTrait
from traitlets import Bool, Instance
from traitlets.config import Config

_LONGEST_BUFFER = 64_000


class LineSession(Session):
    """A session that hands each message to ``write`` instead of signing it and sending it to a socket."""

    write = AnyTrait()

    def send(self, stream: Any, msg_or_type: Any, content: Any = None, parent: Any = None, **options: Any) -> Any:
        """Write one message as JSON: its type, content, metadata, the cell it belongs to, and its buffers."""
        if isinstance(msg_or_type, dict):
            message = msg_or_type
        else:
            message = self.msg(msg_or_type, content=content, parent=parent, metadata=options.get("metadata"))
        line = {
            "type": message["header"]["msg_type"],
            "parent": (message.get("parent_header") or {}).get("msg_id"),
            "content": message["content"],
            "metadata": message.get("metadata") or {},
        }
        buffers = options.get("buffers") or message.get("buffers")
        if buffers:
            line["buffers"] = [base64.b64encode(bytes(buffer)).decode() for buffer in buffers]
        if self.write is not None:
            self.write(line)
        return message


class LineStream(io.TextIOBase):
    """A kernel's stdout or stderr: text is collected and sent as a stream message when it is flushed."""

    encoding = "UTF-8"

    def __init__(self, session: LineSession, name: str) -> None:
        self.session = session
        self.name = name
        self.parent_header: dict[str, Any] = {}
        self.before_flush: Callable[[], None] | None = None
        self._pieces: list[str] = []
        self._length = 0
        self._lock = threading.RLock()

    def set_parent(self, parent: dict[str, Any]) -> None:
        """Say which request the text belongs to from now on."""
        self.parent_header = parent

    def write(self, text: str) -> int:
        """Keep the text until the next flush, or until there is a lot of it."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        with self._lock:
            # In parts, so that a very long text is not held several times over on its way out.
            for start in range(0, len(text), _LONGEST_BUFFER):
                part = text[start : start + _LONGEST_BUFFER]
                self._pieces.append(part)
                self._length += len(part)
                if self._length >= _LONGEST_BUFFER:
                    self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what has been written since the last flush."""
        with self._lock:
            if self.before_flush is not None:
                self.before_flush()
            text, self._pieces, self._length = "".join(self._pieces), [], 0
            if text:
                self.session.send(None, "stream", {"name": self.name, "text": text}, parent=self.parent_header)

    def writable(self) -> bool:
        """Whether text can be written: always."""
        return True

    def isatty(self) -> bool:
        """Whether a person sits at the other end: never."""
        return False

    def fileno(self) -> int:
        """Return the descriptor that programs started by a cell write to."""
        return {"stdout": 1, "stderr": 2}[self.name]


class LineKernel(IPythonKernel):
    """IPython's kernel on a LineSession."""

    session = Instance(LineSession)
    answers_input = Bool(False)
    # ipykernel waits after each cell for output that another thread sends; here nothing is sent by another thread.
    _execute_sleep = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.shell_channel_thread = SimpleNamespace(parent_thread=threading.main_thread(), manager=None)
        self.iopub_socket = self.shell.displayhook.pub_socket = self.shell.display_pub.pub_socket = object()

    def _abort_queues(self, subshell_id: str | None = None) -> None:
        """Nothing is ever queued."""

    async def run_cell(self, message: dict[str, Any]) -> None:
        """Execute one request, with the status messages around it that a client waits for."""
        self.set_parent([], message, channel="shell")
        self._publish_status("busy", "shell")
        # A message meant for this cell: SIGINT interrupts it, and between two cells it would find nobody.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            await self.execute_request(None, [], message)
        except KeyboardInterrupt:
            self.log.error("KeyboardInterrupt caught in kernel.")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.stdout.flush()
            sys.stderr.flush()
            self.set_parent([], message, channel="shell")
            self._publish_status("idle", "shell")


def make_kernel() -> LineKernel:
    """Build the kernel as ``ipykernel_launcher`` would for nbclient: no history file, the inline display hooks."""
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    # nbclient starts kernels with this option; a history that is saved needs a thread as well.
    session = LineSession(key=b"", config=config)
    log = logging.getLogger("ipykernel")
    kernel = LineKernel.instance(session=session, config=config, user_ns=None, log=log)
    kernel.shell.extension_manager.load_extension("storemagic")
    # ipykernel finds its kernel through the application that started it; there is none here.
    kernel.shell.enable_gui = lambda gui=None: enable_gui(gui, kernel)
    _tolerate_backends(kernel.shell)
    _know_cells(kernel.shell)
    return kernel


def _know_cells(shell: Any) -> None:
    """Tell ``inspect`` that a cell's file is no module's.

    A traceback asks for the module of every frame, and each time ``inspect`` looks through all that is loaded: with
    torch a recursion of a thousand frames took some five seconds to be shown.
    """
    cache = shell.compile.cache

    def remember(*arguments: Any, **options: Any) -> str:
        name = cache(*arguments, **options)
        inspect.modulesbyfile[os.path.normcase(os.path.abspath(name))] = None  # type: ignore[attr-defined]
        return name

    shell.compile.cache = remember


def _tolerate_backends(shell: Any) -> None:
    """Let ``%matplotlib widget`` cost no more than its line where that backend is not installed."""
    enable = shell.enable_matplotlib

    def enable_matplotlib(gui: str | None = None) -> Any:
        try:
            return enable(gui)
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).rstrip('.')}. Figures are drawn in the notebook instead.")
            return enable("inline")

    shell.enable_matplotlib = enable_matplotlib


def writer(descriptor: int) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes a message as one line of JSON. Whole lines only, whichever thread writes."""
    lock = threading.Lock()

    def write(message: dict[str, Any]) -> None:
        try:
            text = json.dumps(message, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            # What no JSON can hold becomes what Jupyter makes of it.
            text = json.dumps(_finite(json_clean(message)), default=_plain, allow_nan=False)
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        with lock:
            while data:
                data = data[os.write(descriptor, data) :]

    return write


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    return repr(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not (value - value == 0):
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


class Spill:
    """Catches what programs and C code write to descriptors 1 and 2, and shows it as the cell's output."""

    def __init__(self) -> None:
        self.collecting = False
        self.files = {name: os.memfd_create(name) for name in ("stdout", "stderr")}
        for name, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(self.files[name], number)

    def collect(self) -> None:
        """Move everything caught so far to the stream of the same name."""
        if self.collecting:
            return
        self.collecting = True
        try:
            self._collect()
        finally:
            self.collecting = False

    def _collect(self) -> None:
        for name, number in (("stdout", 1), ("stderr", 2)):
            try:
                length = os.fstat(self.files[name]).st_size
                if not length:
                    continue
                data = os.pread(self.files[name], min(length, 1_000_000), 0)
                os.ftruncate(self.files[name], 0)
                os.lseek(number, 0, os.SEEK_SET)
            except OSError:
                continue
            getattr(sys, name).write(data.decode("utf-8", "replace"))


def serve_cells(kernel: LineKernel, read: Callable[[], dict[str, Any] | None], write: Callable[[dict], None]) -> None:
    """Run cells as they are asked for, until ``read`` returns None."""
    kernel.session.write = write
    sys.stdout, sys.stderr = LineStream(kernel.session, "stdout"), LineStream(kernel.session, "stderr")
    spill = Spill()
    sys.stdout.before_flush = sys.stderr.before_flush = spill.collect
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def serve() -> None:
        from tornado.ioloop import IOLoop

        kernel.io_loop = IOLoop.current()
        while (request := read()) is not None:
            content = {
                "code": request["source"],
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            }
            message = kernel.session.msg("execute_request", content)
            message["header"]["msg_id"] = request["id"]
            await kernel.run_cell(message)

    asyncio.run(serve())

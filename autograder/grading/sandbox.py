"""The host's side of the sandbox: starting a warm parent in it, and running one submission's cells there.

Nothing that comes from a submission's process is trusted: lengths, times and counts are bounded here, and a line that
is not a message is dropped.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.grading import enclosure
from autograder.grading.confine import BUBBLEWRAP, LANDLOCK, NAMESPACES
from autograder.grading.limits import Limits
from autograder.grading.syntax import parsed

START_SECONDS = 120.0
GRACE_SECONDS = 4.0
_CHUNK = 1 << 18


class SandboxError(RuntimeError):
    """No sandbox can be had here, or the one there was is gone; the sentence says why and what to do."""


@dataclass(frozen=True)
class Preload:
    """What the warm parent loads before it forks, all of it the instructor's: the code cells of the reference solution,
    and the exercises that it checks. ``modules`` names what the cells load; None: the parent runs them once to see.
    """

    cells: tuple[str, ...] = ()
    exercises: tuple[str, ...] = ()
    modules: tuple[str, ...] | None = None

    @property
    def imports(self) -> list[str]:
        """Return the import statements of the cells, one by one."""
        trees = filter(None, map(parsed, self.cells))
        statements = (statement for tree in trees for statement in tree.body)
        found = (ast.unparse(each) for each in statements if isinstance(each, (ast.Import, ast.ImportFrom)))
        return list(dict.fromkeys(found))


@dataclass
class Ending:
    """How a cell, or the submission with it, ended. ``dead`` is a sentence once the process is gone."""

    reply: dict[str, Any] | None = None
    timed_out: bool = False
    dropped: bool = False
    dead: str | None = None


class Sandbox:
    """One warm parent. Use it as a context manager, or call ``close``."""

    def __init__(self, requested: str = "auto", preload: Preload | None = None, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.preload = preload or Preload()
        self.notes: list[str] = []
        self.level = ""
        self.language_info: dict[str, Any] = {}
        self.modules: tuple[str, ...] = ()
        self.started_in = 0.0
        self.measures_memory = False
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        self._log = tempfile.TemporaryFile()
        self._requested = requested
        self._start()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Whether the parent still runs."""
        return self._process is not None and self._process.poll() is None

    def has_ended(self) -> bool:
        """Whether the parent is gone, which may show a moment after its forks are."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
        return not self.is_alive()

    def close(self) -> None:
        """End the parent and everything it started."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _start(self) -> None:
        """Start at the best level that works here, saying what was tried in vain. Raises SandboxError for none."""
        if not sys.platform.startswith("linux"):
            raise SandboxError(f"There is no sandbox on {sys.platform}. {WITHOUT}")
        levels = [NAMESPACES, BUBBLEWRAP, LANDLOCK]
        if self._requested != "auto":
            levels = [self._requested]
        for level in levels:
            try:
                if level == BUBBLEWRAP and self._process is not None:
                    self.level = level
                else:
                    self.close()
                    self._launch(level)
                self._try_out()
                return
            except SandboxError as error:
                self.notes.append(f"The sandbox of kind '{level}' does not work here: {error}")
                if not (level == NAMESPACES and self._process is not None):
                    self.close()
        self.close()
        raise SandboxError(" ".join([*self.notes, WITHOUT]))

    def _launch(self, level: str) -> None:
        began = time.perf_counter()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            command, environment = enclosure.command(level, self.limits)
            self._process = subprocess.Popen(
                command,
                stdin=theirs,
                stdout=self._log,
                stderr=self._log,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, enclosure.EnclosureError) as error:
            ours.close()
            raise SandboxError(str(error)) from None
        finally:
            theirs.close()
        self._control, self.level = ours, level
        ready = self._prepare()
        if ready["threads"] != 1:
            raise SandboxError(f"the warm parent has {ready['threads']} threads, so that it cannot be forked safely.")
        self.notes.extend(f"Not loaded in advance: {line}" for line in ready["missing"])
        self.language_info = ready["language_info"]
        self.modules = tuple(ready["modules"])
        self.started_in = time.perf_counter() - began

    def _prepare(self) -> dict[str, Any]:
        preload = self.preload
        order = {"imports": preload.imports, "exercises": preload.exercises, "modules": preload.modules}
        assert self._control is not None
        with (
            tempfile.TemporaryFile() as file,
            tempfile.TemporaryFile() as trial,
            contextlib.suppress(OSError, ValueError),
        ):
            for place, value in ((file, order), (trial, preload.cells)):
                place.write(json.dumps(value).encode())
                place.seek(0)
            self._control.settimeout(START_SECONDS)
            socket.send_fds(self._control, [b"order"], [file.fileno(), trial.fileno()])
            if answer := self._control.recv(1_000_000):
                return json.loads(answer)
        raise SandboxError(f"the worker did not start: {self._last_words()}")

    def _last_words(self) -> str:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing."

    def _try_out(self) -> None:
        """Run one line of our own the way that a submission will be run."""
        with self.submission([]) as run:
            ending = run.execute("6 * 7", "trial", {}, lambda message: None)
        if ending.dead or ending.reply is None or ending.reply.get("status") != "ok":
            raise SandboxError(ending.dead or "a trial cell did not run.")

    @contextlib.contextmanager
    def submission(self, files: Sequence[tuple[str, bytes]]) -> Iterator[Run]:
        """Fork a process for one submission, with these files in its folder.

        Raises SandboxError when the parent is gone.
        """
        ours, theirs = socket.socketpair()
        channel, guard = socket.socketpair()
        try:
            request = {
                "limits": self.limits.as_dict(),
                "level": self.level,
                "readable": enclosure.readable(),
                "listable": enclosure.listable(),
            }
            try:
                assert self._control is not None
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno(), guard.fileno()])
            except (OSError, AssertionError):
                raise SandboxError(f"The sandbox has ended: {self._last_words()}") from None
            theirs.close()
            guard.close()
            run = Run(ours, channel, self.limits)
            run.begin(files)
            yield run
            if self.measures_memory:
                run.measure()
            run.finish()
        finally:
            for end in (ours, theirs, channel, guard):
                end.close()


WITHOUT = "To grade without a sandbox, on your own responsibility and never as root, say --sandbox none."


class Run:
    """One submission's process, as the host sees it: a socket for cells, and one to its guard."""

    def __init__(self, cells: socket.socket, guard: socket.socket, limits: Limits) -> None:
        self.cells = cells
        self.guard = guard
        self.limits = limits
        self.deadline = time.monotonic() + limits.notebook_seconds
        self.dead: str | None = None
        self.usage: dict[str, Any] = {}
        self.cut = 0
        self._waiting = bytearray()

    def begin(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Wait until the process is locked in, and send the submission's files. Raises SandboxError if it is not."""
        import base64

        report = self._hear_guard(START_SECONDS)
        if not report.get("started"):
            raise SandboxError(report.get("failed") or "the guard did not report.")
        named = [(path, base64.b64encode(data).decode()) for path, data in files]
        self._send({"files": named})

    def execute(
        self,
        source: str,
        name: str,
        environment: Mapping[str, str],
        receive: Callable[[dict[str, Any]], None],
        forget: Sequence[str] = (),
    ) -> Ending:
        """Run one cell and hand over its messages as they come. Says how it ended; never raises for what it does."""
        if self.dead:
            return Ending(dead=self.dead)
        ending, received, count, cut = Ending(), 0, 0, self.cut
        self._send({"id": name, "source": source, "environment": dict(environment), "forget": list(forget)})
        until = min(time.monotonic() + self.limits.cell_seconds, self.deadline)
        while not self.dead:
            line = self._line(until)
            if line is None:
                if self.dead:
                    break
                if ending.timed_out:
                    self.end(f"it went on after an interrupt, and was ended {GRACE_SECONDS:.0f} s later")
                    break
                ending.timed_out = True
                self._tell_guard(b"i")
                until = time.monotonic() + GRACE_SECONDS
                continue
            received, count = received + len(line), count + 1
            message = _message(line, name)
            if message is None:
                continue
            if message["type"] == "status" and message["content"].get("execution_state") == "idle":
                break
            if message["type"] == "execute_reply":
                ending.reply = message["content"]
            elif received > self.limits.output or count > self.limits.messages:
                ending.dropped = True
            else:
                receive(message)
        if time.monotonic() > self.deadline and not self.dead:
            self.end(f"the notebook took longer than {self.limits.notebook_seconds:.0f} s")
        ending.dead = self.dead
        ending.dropped = ending.dropped or self.cut > cut
        return ending

    def _line(self, until: float) -> bytes | None:
        """Return the next line, or None when the time is over or the process is gone. Too long a line is cut away."""
        cutting, searched = False, 0
        while True:
            end = self._waiting.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._waiting[:end])
                del self._waiting[: end + 1]
                searched = 0
                if not cutting:
                    return line
                cutting = False
                continue
            searched = len(self._waiting)
            if searched > self.limits.output:
                self._waiting, searched, cutting = bytearray(), 0, True
                self.cut += 1
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.cells], [], [], left)[0]:
                return None
            try:
                data = self.cells.recv(_CHUNK)
            except OSError:
                data = b""
            if not data:
                self._ended()
                return None
            self._waiting += data

    def _ended(self) -> None:
        self.usage = self._hear_guard(GRACE_SECONDS)
        if self.dead is None:
            self.dead = _how_it_ended(self.usage)

    def end(self, why: str) -> None:
        """End the process and all that it started."""
        self.dead = why
        self._tell_guard(b"k")
        self.usage = self._hear_guard(GRACE_SECONDS)

    def measure(self) -> None:
        """Have the guard look how much memory the process holds now; the answer is in ``usage`` at the end."""
        if not self.dead:
            self._tell_guard(b"m")
            self._hear_guard(GRACE_SECONDS)

    def finish(self) -> None:
        """Let the process end after its last cell, or end it."""
        if self.dead:
            return
        self.cells.shutdown(socket.SHUT_WR)
        until = time.monotonic() + 1.0
        with contextlib.suppress(OSError):
            while (left := until - time.monotonic()) > 0 and select.select([self.cells], [], [], left)[0]:
                if not self.cells.recv(_CHUNK):
                    break
        self._tell_guard(b"k")
        self.usage = self._hear_guard(GRACE_SECONDS)

    def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        self.cells.settimeout(self.limits.cell_seconds)
        try:
            self.cells.sendall(data)
        except OSError:
            self._ended()

    def _tell_guard(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self.guard.sendall(word)

    def _hear_guard(self, seconds: float) -> dict[str, Any]:
        text, until = bytearray(), time.monotonic() + seconds
        with contextlib.suppress(OSError, ValueError):
            while not text.endswith(b"\n"):
                left = until - time.monotonic()
                if left <= 0 or not select.select([self.guard], [], [], left)[0]:
                    return {}
                data = self.guard.recv(1)
                if not data:
                    return {}
                text += data
            return json.loads(text)
        return {}


def _message(line: bytes, name: str) -> dict[str, Any] | None:
    """Return a line as a message of this cell, or None when it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("parent") != name or not isinstance(message.get("type"), str):
        return None
    if not isinstance(message.get("content"), dict) or not isinstance(message.get("metadata"), dict):
        return None
    return message


def _how_it_ended(usage: Mapping[str, Any]) -> str:
    code = usage.get("exit")
    if code is None:
        return "its process ended"
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"its process was ended by signal {name}"

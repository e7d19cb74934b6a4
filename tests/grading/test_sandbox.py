"""What hostile cells can do inside the sandbox: nothing outside their own process, and nothing to the cells before."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.grading.confine import BUBBLEWRAP, LANDLOCK, NAMESPACES
from autograder.grading.limits import MEGABYTE, Limits
from autograder.grading.replay import run_cells
from autograder.grading.sandbox import Ending, Preload, Sandbox, SandboxError
from autograder.grading.ticket import Ticket

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is made of Linux's parts")

LIMITS = Limits(
    cell_seconds=3,
    notebook_seconds=30,
    memory=700 * MEGABYTE,
    disk=32 * MEGABYTE,
    processes=24,
    output=2 * MEGABYTE,
    messages=300,
)


@pytest.fixture(scope="module", params=[NAMESPACES, BUBBLEWRAP, LANDLOCK])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox of each kind that this machine and this user can have."""
    try:
        made = Sandbox(request.param, Preload(("import torch",), ()), LIMITS)
    except SandboxError as error:
        pytest.skip(str(error))
    with made:
        yield made


def _run(sandbox: Sandbox, *sources: str, files: list[tuple[str, bytes]] | None = None) -> NotebookNode:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    notebook.metadata["unfinished"], _ = run_cells(notebook, sandbox, files or [], Ticket(1))
    return notebook


def _text(cell: NotebookNode) -> str:
    """Everything that a cell shows, as text."""
    pieces = []
    for output in cell.outputs:
        if output.output_type == "error":
            pieces.append(f"{output.ename}: {output.evalue}")
        else:
            pieces.append(output.text if output.output_type == "stream" else output.data.get("text/plain", ""))
    return "".join(pieces)


def test_cells_share_a_process_and_show_what_a_kernel_shows(sandbox: Sandbox) -> None:
    notebook = _run(sandbox, "import torch\nx = 3\nprint('hi')", "x + 1", "1/0", "x", files=[("data/a.txt", b"hello")])
    assert [_text(cell) for cell in notebook.cells] == ["hi\n", "4", "ZeroDivisionError: division by zero", "3"]
    assert [cell.execution_count for cell in notebook.cells] == [1, 2, 3, 4]
    assert notebook.metadata["unfinished"] is None
    assert notebook.metadata["language_info"]["name"] == "python"


def test_files_are_there_and_programs_can_be_started(sandbox: Sandbox) -> None:
    shell = "!echo from a shell" if sandbox.level != LANDLOCK else "print('from a shell')"
    notebook = _run(
        sandbox,
        "open('data/a.txt').read()",
        shell,
        "import subprocess\nsubprocess.run(['echo', 'hello'], capture_output=True, text=True).stdout",
        "open('new.txt', 'w').write('abc'); open('new.txt').read()",
        files=[("data/a.txt", b"hello")],
    )
    assert [_text(cell).strip() for cell in notebook.cells] == ["'hello'", "from a shell", "'hello\\n'", "'abc'"]


def test_a_submission_never_sees_another_ones_files_or_memory(sandbox: Sandbox) -> None:
    _run(sandbox, "secret = 1\nopen('left.txt', 'w').write('x')\nimport sys\nsys.left_behind = True")
    notebook = _run(sandbox, "import os, sys\n[os.listdir('.'), hasattr(sys, 'left_behind'), 'secret' in globals()]")
    assert _text(notebook.cells[0]) == "[[], False, False]"


def test_each_submission_has_random_numbers_of_its_own(sandbox: Sandbox) -> None:
    source = "import numpy, random, torch\n[torch.initial_seed(), random.random(), numpy.random.rand()]"
    first, second = (_text(_run(sandbox, source).cells[0]).strip("[]").split(", ") for _ in range(2))
    assert not set(first) & set(second)


REFUSED = {
    "reading the course": "import os\nos.listdir({course!r})",
    "reading the gradebook": "open({course!r} + '/gradebook.db', 'rb').read(1)",
    "reading the solutions": "open({course!r} + '/solutions/ch03_buffers_and_state/ch03_buffers_and_state.py').read(1)",
    "reading a home": "import os\nos.listdir('/root'), os.listdir('/home')",
    "reading the password file": "open('/etc/shadow').read()",
    "reading another process": "open('/proc/1/environ').read()",
    "writing to the system": "open('/usr/written-by-a-student', 'w')",
    "writing to Python": "import torch\nopen(torch.__file__, 'a')",
    "writing to the autograder": "import autograder\nopen(autograder.__file__, 'a')",
    "making a socket": "import socket\nsocket.socket()",
    "connecting": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
    "the web": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}', timeout=1)",
    "a namespace": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "a mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None) == 0",
    "tracing": "import ctypes\nassert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    "leaving its limits": "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (10000, 10000))",
    "becoming root": "import os\nos.setuid(0)",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED)
def test_what_reaches_beyond_the_process_is_refused(sandbox: Sandbox, source: str, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        notebook = _run(sandbox, source.format(course=str(root), port=server.getsockname()[1]), "'still here'")
    assert notebook.cells[0].outputs[-1].output_type == "error", _text(notebook.cells[0])
    assert _text(notebook.cells[1]) == "'still here'"


def test_it_is_not_root_and_has_no_capabilities(sandbox: Sandbox) -> None:
    source = (
        "import os\nstatus = open('/proc/self/status').read()\n"
        "[os.getuid() != 0, [line.split()[1] for line in status.splitlines() if line.startswith('CapEff')],"
        " 'NoNewPrivs:\\t1' in status, 'Seccomp:\\t2' in status]"
    )
    assert _text(_run(sandbox, source).cells[0]) == "[True, ['0000000000000000'], True, True]"


def test_the_environment_holds_no_secret_of_the_host(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = _run(sandbox, "import os\nsorted(os.environ)")
    names = set(eval(_text(notebook.cells[0])))
    assert not names & {"AUTOGRADER_GRADING_SEED", "AUTOGRADER_GRADING_RUN", "SSH_AUTH_SOCK", "PYTEST_CURRENT_TEST"}


def test_an_endless_loop_costs_its_cell(sandbox: Sandbox) -> None:
    began = time.monotonic()
    notebook = _run(sandbox, "x = 1", "while True: pass", "x")
    assert time.monotonic() - began < 10
    assert [output.ename for output in notebook.cells[1].outputs] == ["KeyboardInterrupt", "CellTimeoutError"]
    assert _text(notebook.cells[2]) == "1"


ENDING = {
    "leaving": ("import os\nos._exit(0)", "ended with exit code 0"),
    "a fault": ("import ctypes\nctypes.string_at(0)", "ended by signal SIGSEGV"),
    "ignoring interrupts": (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "went on after an interrupt",
    ),
}


@pytest.mark.parametrize(("source", "said"), ENDING.values(), ids=ENDING)
def test_the_end_of_the_process_leaves_the_cells_before(sandbox: Sandbox, source: str, said: str) -> None:
    notebook = _run(sandbox, "'kept'", source, "'never'", "")
    assert _text(notebook.cells[0]) == "'kept'"
    assert said in _text(notebook.cells[1])
    assert notebook.cells[2].outputs == [] and notebook.cells[2].execution_count is None
    assert "code cell 2" in notebook.metadata["unfinished"] and said in notebook.metadata["unfinished"]
    assert _text(_run(sandbox, "'the next one'").cells[0]) == "'the next one'"


def test_memory_is_bounded_and_the_notebook_goes_on(sandbox: Sandbox) -> None:
    notebook = _run(sandbox, "x = bytearray(3 << 30)", "import torch\ntorch.ones(1 << 30)", "'on'")
    assert "MemoryError" in _text(notebook.cells[0])
    assert "RuntimeError" in _text(notebook.cells[1])
    assert _text(notebook.cells[2]) == "'on'"


def test_processes_are_bounded_and_none_outlives_the_run(sandbox: Sandbox) -> None:
    # At most a few dozen children that sleep: the limit was proven before with children that only wait.
    source = (
        "import os, time\nmade = 0\n"
        "try:\n    while made < 60:\n"
        "        if os.fork() == 0:\n            time.sleep(55.5)\n            os._exit(0)\n        made += 1\n"
        "except OSError as error:\n    print(made < 40, type(error).__name__)\n"
    )
    escape = "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '55.25'])"
    notebook = _run(sandbox, escape, source)
    assert _text(notebook.cells[1]).startswith("True BlockingIOError"), _text(notebook.cells[1])
    time.sleep(0.2)
    assert not _sleeping("55.25") and not _sleeping("55.5")


def _sleeping(what: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if line.startswith("sleep") and what in line:
                found.append(line)
    return found


def test_the_disk_is_bounded(sandbox: Sandbox) -> None:
    if sandbox.level != NAMESPACES:
        pytest.skip("without a mount namespace of its own only the size of each file is bounded")
    source = "for i in range(100):\n    open(f'f{i}', 'wb').write(b'x' * 2**20)"
    notebook = _run(sandbox, source, "'on'")
    assert "No space left" in _text(notebook.cells[0]) and _text(notebook.cells[1]) == "'on'"


def test_output_is_bounded(sandbox: Sandbox) -> None:
    source = "from IPython.display import display\nfor i in range(1000): display({'text/plain': str(i)}, raw=True)"
    notebook = _run(sandbox, source, "print('x' * (5 << 20))", "import os\nos.write(1, b'y' * 300)\n'on'")
    assert len(notebook.cells[0].outputs) < LIMITS.messages + 2
    assert "the rest was dropped" in _text(notebook.cells[0]) and "the rest was dropped" in _text(notebook.cells[1])
    assert "'on'" in _text(notebook.cells[2]) and "yyy" in _text(notebook.cells[2])


_FIELDS = '{"parent": NAME, "metadata": {}, "type": '
FORGED = {
    "no JSON": "hello",
    "a number": "5",
    "a tower": "[" * 100_000,
    "a broken output": _FIELDS + '"display_data", "content": {"data": 5, "metadata": {}}}',
    "a broken stream": _FIELDS + '"stream", "content": {"name": "x", "text": 5}}',
    "a broken widget": _FIELDS + '"comm_open", "content": {}, "buffers": [5]}',
    "half a character": _FIELDS + '"stream", "content": {"name": "stdout", "text": "\\ud800"}}',
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
def test_lines_written_past_the_kernel_are_dropped(sandbox: Sandbox, line: str) -> None:
    source = (
        f"import json, os\nname = json.dumps(get_ipython().parent_header['header']['msg_id'])\n"
        f"os.write(3, ({line!r}.replace('NAME', name) + chr(10)).encode())\nprint('after')"
    )
    notebook = _run(sandbox, source, "'on'")
    assert _text(notebook.cells[0]) == "after\n"
    assert _text(notebook.cells[1]) == "'on'"


def test_a_forged_end_of_a_cell_moves_no_output_to_another(sandbox: Sandbox) -> None:
    done = '{"parent": %s, "type": "status", "content": {"execution_state": "idle"}, "metadata": {}}'
    source = (
        "import json, os, time\nname = json.dumps(get_ipython().parent_header['header']['msg_id'])\n"
        f"os.write(3, ({done!r} % name + chr(10)).encode())\ntime.sleep(0.5)\nprint('late')"
    )
    notebook = _run(sandbox, source, "'next'")
    assert _text(notebook.cells[1]) == "'next'"


def test_a_notebook_has_a_time_of_its_own() -> None:
    limits = Limits(cell_seconds=2, notebook_seconds=3, memory=LIMITS.memory)
    try:
        made = Sandbox("auto", Preload(), limits)
    except SandboxError as error:
        pytest.skip(str(error))
    with made:
        notebook = _run(made, "import time\ntime.sleep(1.8)", "time.sleep(1.8)", "'never'")
    assert "longer than 3 s" in notebook.metadata["unfinished"]
    assert notebook.cells[2].execution_count is None


def test_the_parent_has_one_thread_and_ends_with_its_host() -> None:
    try:
        made = Sandbox("auto", Preload(("import torch\nimport random", "import numpy"), ("my_batchnorm",)), LIMITS)
    except SandboxError as error:
        pytest.skip(str(error))
    with made:
        assert made.is_alive()
        process = made._process
        assert process is not None
    assert process.poll() is not None
    with pytest.raises(SandboxError, match="ended"), made.submission([]):
        pass


def test_an_unknown_kind_or_another_system_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxError, match="There is no sandbox on darwin. .*--sandbox none"):
        Sandbox()


def test_each_fallback_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.grading.enclosure.shutil.which", lambda name: None)
    try:
        with Sandbox() as made:
            assert made.level == LANDLOCK
            said = made.notes
    except SandboxError as error:
        said = [str(error)]
    assert "'namespaces' does not work here: the program bwrap is missing" in said[0]


def test_the_worker_refuses_to_be_root(root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this user is not root")
    import subprocess

    command = [sys.executable, "-m", "autograder.grading.worker"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "does not run as root" in done.stderr


def test_the_ending_of_a_dead_run_is_repeated() -> None:
    from autograder.grading.sandbox import Run

    ours, theirs = socket.socketpair()
    guard, other = socket.socketpair()
    run: Any = Run(ours, guard, LIMITS)
    theirs.close()
    other.close()
    assert run.execute("1", "a", {}, lambda message: None).dead == "its process ended"
    assert run.execute("1", "b", {}, lambda message: None) == Ending(dead="its process ended")
    ours.close()
    guard.close()

"""Bombs: processes, threads, memory, disk, output."""

from __future__ import annotations

from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {
    "timeout": 8,
    "notebook_seconds": 60,
    "memory_megabytes": 900,
    "disk_megabytes": 32,
    "processes": 32,
}
_GOES_ON = scored(my_dropout=0)


def _beside_a_right_answer(name: str, why: str, source: str, says: str = "") -> Case:
    """The bomb stands in the same cell after the answer, so that the answer is there whatever becomes of the bomb."""
    return Case(name, why, scored(), {"my_dropout": f"{RIGHT_DROPOUT}\n\n{source}"}, says=says)


CASES = [
    _beside_a_right_answer(
        "fork_bomb",
        "After a few dozen the kernel refuses more, and all of them end with the submission.",
        "import os\nmade = 0\n"
        "try:\n    while made < 100:\n        if os.fork() == 0:\n            import time\n            time.sleep(30)\n"
        "            os._exit(0)\n        made += 1\nexcept OSError as error:\n    print('refused', made < 40)\n",
        "refused True",
    ),
    _beside_a_right_answer(
        "thread_bomb",
        "After a few dozen the kernel refuses more.",
        "import threading, time\nmade = []\n"
        "try:\n    while len(made) < 100:\n        made.append(threading.Thread(target=time.sleep, args=(0.5,)))\n"
        "        made[-1].start()\nexcept RuntimeError:\n    print('refused', len(made) < 40)\n"
        "for each in made:\n    each.is_alive() and each.join()\n",
        "refused True",
    ),
    _beside_a_right_answer(
        "memory_bomb", "A MemoryError, and the notebook goes on.", "big = bytearray(8 << 30)", "MemoryError"
    ),
    _beside_a_right_answer(
        "memory_bomb_in_pieces",
        "The same where it grows slowly.",
        "kept = []\nwhile True:\n    kept.append(bytearray(32 << 20))",
        "MemoryError",
    ),
    _beside_a_right_answer(
        "memory_bomb_of_tensors", "torch says so itself.", "big = torch.ones(1 << 31)", "RuntimeError"
    ),
    _beside_a_right_answer(
        "memory_mapped", "Mapped memory is counted too.", "import mmap\nm = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE)\n"
    ),
    Case(
        "disk_bomb",
        "The submission's own disk is full, and nobody else's; what it saves later fails and says so.",
        scored(save_and_resume=0),
        {
            "my_dropout": f"{RIGHT_DROPOUT}\n\nfor number in range(200):\n"
            "    open(f'f{number}', 'wb').write(b'x' * 2**20)"
        },
        says="No space left",
    ),
    Case(
        "inode_bomb",
        "The same for a great many empty files.",
        scored(save_and_resume=0),
        {"my_dropout": f"{RIGHT_DROPOUT}\n\nfor number in range(60000):\n    open(f'f{{number}}', 'w').close()"},
        says="No space left",
    ),
    _beside_a_right_answer(
        "one_enormous_file", "A file has a largest size.", "open('big', 'wb').truncate(1 << 40)", "File too large"
    ),
    _beside_a_right_answer(
        "descriptor_bomb",
        "The number of open files is bounded.",
        "kept = []\ntry:\n    while True:\n        kept.append(open('/dev/null'))\n"
        "except OSError as error:\n    print(error.strerror)\nkept.clear()",
        "Too many open files",
    ),
    _beside_a_right_answer(
        "a_gigabyte_of_output",
        "What is too much is dropped and said; the cell ends in its own time.",
        "text = 'x' * (1 << 20)\nfor _ in range(1024):\n    print(text)",
        "the rest was dropped",
    ),
    _beside_a_right_answer(
        "a_gigabyte_in_one_line",
        "A line that long is dropped.",
        "print('x' * (200 << 20))",
        "the rest was dropped",
    ),
    _beside_a_right_answer(
        "a_gigabyte_past_the_kernel",
        "Programs write to a file in memory, which has a largest size.",
        "import os\ntry:\n    for _ in range(1024):\n        os.write(1, b'y' * (1 << 20))\nexcept OSError as error:\n"
        "    pass\n",
    ),
    _beside_a_right_answer(
        "a_million_small_outputs",
        "After five thousand the rest is dropped.",
        "from IPython.display import display\ntry:\n"
        "    for number in range(1_000_000):\n        display({'text/plain': str(number)}, raw=True)\n"
        "except KeyboardInterrupt:\n    pass\n",
        "the rest was dropped",
    ),
    _beside_a_right_answer(
        "a_display_updated_for_ever",
        "Updates count as well.",
        "from IPython.display import display\nhandle = display('a', display_id=True)\n"
        "for number in range(20000):\n    handle.update(str(number))\n",
        "the rest was dropped",
    ),
    _beside_a_right_answer(
        "outputs_cleared_for_ever",
        "A message that clears counts like any other.",
        "from IPython.display import clear_output\nfor number in range(20000):\n    clear_output()\n",
    ),
    _beside_a_right_answer(
        "an_enormous_traceback",
        "A message as long as that is cut.",
        "raise ValueError('x' * (64 << 20))",
    ),
    _beside_a_right_answer(
        "an_enormous_display",
        "The same for what is displayed.",
        "from IPython.display import display\ndisplay({'text/html': 'x' * (64 << 20)}, raw=True)",
        "the rest was dropped",
    ),
    Case(
        "an_enormous_state",
        "What is too much to hand over is named instead, and costs the check that it belongs to.",
        scored(my_dropout=2.95),
        {
            "my_dropout": RIGHT_DROPOUT.replace(
                "        self.p = p",
                "        self.p = p\n        self.register_buffer('big', torch.zeros(3_000_000))\n"
                "        for i in range(3000):\n            setattr(self, 'x' * 3000 + str(i), nn.Parameter(torch.zeros(1)))",
            )
        },
    ),
    Case(
        "a_shape_without_end",
        "A tensor that only pretends to be large (expand) is not copied out; what a check still sees is scored.",
        scored(my_dropout=0.4),
        {
            "my_dropout": RIGHT_DROPOUT.replace(
                "return x * mask", "return torch.zeros(1).expand(10**5, 10**5)"
            ).replace("        if not self.training or self.p == 0:\n            return x\n", "")
        },
    ),
    Case(
        "processor_time",
        "Children that compute in the background end with the submission.",
        scored(),
        {
            "my_dropout": RIGHT_DROPOUT + "\n\nimport os\nfor _ in range(4):\n    if os.fork() == 0:\n"
            "        while True:\n            pass\n"
        },
    ),
]


class TestResources(Family):
    """A bomb costs at most the cell in which it goes off."""

    def test_the_graded_notebooks_stay_small(self, graded: GradedClass) -> None:
        """What was dropped is in no file."""
        sizes = {file: file.stat().st_size for file in (graded.course / "autograded").rglob("*.ipynb")}
        assert max(sizes.values()) < 40 << 20

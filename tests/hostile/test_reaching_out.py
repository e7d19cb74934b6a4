"""Reading what is not theirs, writing where they may not, and the network."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from autograder.grading.ticket import grading_seed
from tests.grading import classroom
from tests.grading.answers import RIGHT_DROPOUT
from tests.hostile.case import Case, GradedClass, scored
from tests.hostile.family import Family

LIMITS = {"timeout": 20, "memory_megabytes": 1200, "disk_megabytes": 32, "processes": 32}
FOUND = "THIS WAS " + "WITHIN REACH"


def _reaching(name: str, why: str, source: str) -> Case:
    """Each tries something after a right answer; it says so where it succeeds, and costs nothing where it fails."""
    tried = "\n".join(f"    {line}" for line in source.splitlines())
    code = f"{RIGHT_DROPOUT}\n\nfound = []\ntry:\n{tried}\nexcept BaseException as error:\n    print(type(error).__name__)\n"
    return Case(name, why, scored(), {"my_dropout": f"{code}print('THIS WAS', 'WITHIN REACH') if found else None\n"})


_WALK = (
    "import os\nfor top in ('/', '..', '../..', '../../..', '/proc/1/root', '/proc/self/root', '/proc/self/cwd/..'):\n"
    "    for folder, folders, names in os.walk(top):\n"
    "        if folder.count('/') > 6:\n            folders.clear()\n"
    "        folders[:] = [each for each in folders if each not in ('sys', 'usr', 'lib', 'site-packages')]\n"
    "        found += [os.path.join(folder, n) for n in names if {test}]\n"
)
_ADDRESSES = "[('127.0.0.1', PORT), ('::1', PORT), ('localhost', PORT), ('169.254.169.254', 80), ('10.0.2.2', 53)]"

CASES = [
    _reaching("gradebook", "It is not there.", _WALK.format(test="'gradebook' in n")),
    _reaching("grading_seed", "It is not there.", _WALK.format(test="'grading_seed' in n")),
    _reaching("solutions_and_submissions", "They are not there.", _WALK.format(test="n.endswith('.ipynb')")),
    _reaching("configuration", "It is not there.", _WALK.format(test="'nbgrader_config' in n")),
    _reaching("passwords", "They are not there.", "found.append(open('/etc/shadow').read())"),
    _reaching(
        "keys_and_histories",
        "No home of anybody's is there.",
        "import glob, os\nfound += glob.glob('/root/.*/*') + glob.glob('/home/*/.*') + glob.glob('/root/*')\n",
    ),
    _reaching(
        "seed_in_the_environment",
        "Outside a check the environment names no seed and no run.",
        "import os\nfound += [name for name in os.environ if name.startswith('AUTOGRADER')]",
    ),
    _reaching(
        "secrets_in_the_environment",
        "Nothing of the environment of whoever grades is passed on.",
        "import os\nfound += [name for name in os.environ if 'HOSTILE' in name or 'SSH' in name or 'TOKEN' in name]",
    ),
    _reaching(
        "environment_of_other_processes",
        "Other processes cannot be looked at.",
        "import glob\nfor file in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try:\n        text = open(file, 'rb').read()\n    except OSError:\n        continue\n"
        "    found += [file] if b'HOSTILE_SECRET' in text else []",
    ),
    _reaching(
        "memory_of_other_processes",
        "Other processes cannot be looked at.",
        "import glob, os\nfor file in glob.glob('/proc/[0-9]*/maps'):\n"
        "    if file.split('/')[2] == str(os.getpid()):\n        continue\n"
        "    try:\n        found += [file] if open(file).read() else []\n    except OSError:\n        pass",
    ),
    _reaching(
        "tracing_the_parent",
        "No process may be traced.",
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "found += [1] if libc.ptrace(16, os.getppid(), 0, 0) == 0 else []",
    ),
    _reaching(
        "writing_to_the_system",
        "Everything but its own folder is read-only.",
        "for place in ('/usr/x', '/etc/x', '/bin/x', '/lib/x', '/x', '/opt/x', '/var/x', '/work/x', '/home/x', '/root/x'):\n"
        "    try:\n        open(place, 'w').write('x'); found.append(place)\n    except OSError:\n        pass",
    ),
    _reaching(
        "writing_to_python_and_torch",
        "Neither Python nor torch nor the autograder can be changed.",
        "import autograder, os, simulations\n"
        "for module in (os, torch, autograder, simulations):\n"
        "    try:\n        open(module.__file__, 'a').write('#'); found.append(module.__file__)\n    except OSError:\n        pass",
    ),
    _reaching(
        "the_host_through_the_engines_socket",
        "The channel carries messages of this run and nothing else, and no file of the host is open.",
        "import os\nfor number in range(3, 64):\n"
        "    try:\n        link = os.readlink(f'/proc/self/fd/{number}')\n    except OSError:\n        continue\n"
        "    found += [link] if link.startswith('/') and not link.startswith(('/dev', '/tmp/submission', '/proc/', '/memfd:')) else []",
    ),
    _reaching(
        "connecting",
        "No socket of the internet's families can be made.",
        "import os, socket\nPORT = 45871\n"
        f"for address in {_ADDRESSES}:\n"
        "    try:\n        socket.create_connection(address, 1); found.append(address)\n    except OSError:\n        pass",
    ),
    _reaching(
        "every_family_of_sockets",
        "None but those between processes of its own.",
        "import socket\nfor family in range(2, 46):\n"
        "    for kind in (1, 2, 3, 5):\n"
        "        try:\n            socket.socket(family, kind); found.append((family, kind))\n        except OSError:\n            pass",
    ),
    _reaching(
        "abstract_and_named_sockets",
        "Those between processes lead to none outside.",
        "import glob, socket\n"
        "for path in [*glob.glob('/run/**/*sock*', recursive=True), *glob.glob('/var/run/*'), '\\0hostile-listener']:\n"
        "    try:\n        s = socket.socket(socket.AF_UNIX); s.connect(path); found.append(path)\n    except OSError:\n        pass",
    ),
    _reaching(
        "the_web",
        "There is no way out.",
        "import urllib.request\nfound.append(urllib.request.urlopen('http://127.0.0.1'))",
    ),
    _reaching(
        "devices",
        "No disk and no memory of the machine.",
        "import glob\nfor path in [*glob.glob('/dev/*'), *glob.glob('/dev/**/*')]:\n"
        "    if any(each in path for each in ('sd', 'vd', 'nvme', 'mem', 'kmsg', 'fuse', 'kvm', 'loop', 'mapper')):\n"
        "        try:\n            open(path, 'rb').read(1); found.append(path)\n        except OSError:\n            pass",
    ),
    _reaching(
        "more_rights",
        "There is none to be had.",
        "import os\nfor call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.chroot('/')):\n"
        "    try:\n        call(); found.append(call)\n    except OSError:\n        pass\n"
        "found += [os.getuid()] if os.getuid() == 0 else []",
    ),
    _reaching(
        "namespaces_and_mounts",
        "Nothing can be mounted, and no namespace entered.",
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "for flags in (0x10000000, 0x20000, 0x40000000, 0x10020000):\n    found += [flags] if libc.unshare(flags) == 0 else []\n"
        "found += ['mount'] if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 else []",
    ),
    _reaching(
        "larger_limits",
        "A limit that was set cannot be raised.",
        "import resource\n"
        "for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):\n"
        "    try:\n        resource.setrlimit(kind, (1 << 40, 1 << 40)); found.append(kind)\n"
        "    except (OSError, ValueError):\n        pass",
    ),
    _reaching(
        "the_clock",
        "The machine's clock cannot be set.",
        "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0); found.append(1)",
    ),
    Case(
        "shell_escapes_and_magics",
        "They run inside the same walls.",
        scored(),
        {
            "my_dropout": f"{RIGHT_DROPOUT}\n\n!ls .. ../.. /root /home 2>/dev/null | grep -c gradebook\n"
            "%cd /\n!cat /etc/shadow 2>&1 | grep -c root:\n%cd -\nx = !id -u\nprint('user', x[0] != '0')\n"
            "%env AUTOGRADER_GRADING_SEED=1\n%env -u AUTOGRADER_GRADING_SEED\n"
        },
        says="user True",
    ),
    Case(
        "cell_magics",
        "A cell that is a shell's defines no layer.",
        scored(my_dropout=0),
        {"my_dropout": "%%bash\necho THIS IS NO LAYER\nls /root && echo open\n"},
        says="THIS IS NO LAYER",
    ),
    Case(
        "a_seed_of_its_own",
        "The check gets the course's seed, whatever the environment was made to say.",
        scored(my_dropout=0),
        {
            "my_dropout": "import os\nos.environ.update(AUTOGRADER_GRADING_SEED='0', AUTOGRADER_GRADING_RUN='0')\n"
            "class MyDropout(nn.Module):\n    def __init__(self, p=0.5):\n        raise RuntimeError\n"
        },
    ),
]


@pytest.fixture(scope="module", autouse=True)
def listener() -> Iterator[None]:
    """Somebody to talk to on this machine, and a secret in the environment of whoever grades."""
    os.environ["HOSTILE_SECRET_TOKEN"] = "of the instructor"
    heard: list[object] = []
    with socket.create_server(("127.0.0.1", 45871)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind("\0hostile-listener")
        named.listen()
        threading.Thread(target=lambda: _accept(server, heard), daemon=True).start()
        threading.Thread(target=lambda: _accept(named, heard), daemon=True).start()
        yield
        del os.environ["HOSTILE_SECRET_TOKEN"]
    assert not heard


def _accept(server: socket.socket, heard: list[object]) -> None:
    try:
        heard.append(server.accept())
    except OSError:
        return


class TestReachingOut(Family):
    """Nothing outside is within reach, and having tried costs nothing."""

    def test_nothing_was_within_reach(self, graded: GradedClass) -> None:
        """None of those that tried found anything."""
        assert not [case.name for case in CASES if FOUND in graded.text(case.name)]

    def test_the_secret_is_in_no_graded_notebook(self, graded: GradedClass) -> None:
        """Neither the phrase nor the seed that is made of it."""
        for file in (graded.course / "autograded").rglob("*.ipynb"):
            text = file.read_text()
            assert classroom.SECRET not in text and str(grading_seed(classroom.SECRET)) not in text

"""A JupyterHub of the tests' own, on loopback, from the configuration that docs/jupyterhub.md gives."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

ROOT = Path(__file__).resolve().parents[2]
ADMINISTRATOR = secrets.token_hex(16)
SCOPES = ["admin:users", "admin:servers", "tokens"]
PROXY = shutil.which("configurable-http-proxy") or shutil.which(
    "configurable-http-proxy", path=str(ROOT / "node_modules" / ".bin")
)
needs_jupyterhub = pytest.mark.skipif(
    importlib.util.find_spec("jupyterhub") is None or PROXY is None or shutil.which("node") is None,
    reason="JupyterHub or its proxy is missing: pip install jupyterhub, npm install configurable-http-proxy@5.1.0",
)


def documented(heading: str) -> str:
    """Return the configuration that docs/jupyterhub.md gives under a heading."""
    text = (ROOT / "docs" / "jupyterhub.md").read_text(encoding="utf-8")
    section = next(part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(heading))
    return re.search(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1]


@dataclass
class Server:
    """One user's server behind the hub's proxy."""

    address: str
    session: requests.Session

    def get(self, path: str) -> Any:
        """Return what the server answers, read as JSON."""
        return self._read(self.session.get(f"{self.address}/{path}", timeout=120))

    def post(self, address: str, /, **fields: str) -> Any:
        """Send a form, as nbgrader's buttons do, and return the answer."""
        return self._read(self.session.post(f"{self.address}/{address}", data=fields, timeout=240))

    def put(self, path: str, content: Any) -> Any:
        """Send JSON and return the answer."""
        return self._read(self.session.put(f"{self.address}/{path}", json=content, timeout=120))

    @staticmethod
    def _read(answer: requests.Response) -> Any:
        assert answer.ok, f"{answer.request.method} {answer.url}: {answer.status_code}\n{answer.text[-2000:]}"
        return answer.json()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


def _configure(folder: Path, ports: list[int]) -> None:
    """Write the documented configuration with this folder's paths, and what makes it a hub for tests."""
    places = {"/srv/nbgrader/exchange": str(folder / "exchange"), "/home/": f"{folder}/home/"}

    def here(heading: str) -> str:
        text = documented(heading)
        for documented_place, place in places.items():
            text = text.replace(documented_place, place)
        return text

    public, api, hub = ports
    (folder / "exchange").mkdir()
    (folder / "exchange").chmod(0o777)
    (folder / "etc").mkdir()
    (folder / "etc" / "nbgrader_config.py").write_text(here("`/etc/jupyter/nbgrader_config.py`"))
    own = folder / "home" / "instructor" / ".jupyter"
    own.mkdir(parents=True)
    (own / "nbgrader_config.py").write_text(here("The instructor's account"))
    surroundings = {
        "JUPYTER_CONFIG_PATH": str(folder / "etc"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    (folder / "jupyterhub_config.py").write_text(
        here("`/etc/jupyterhub/jupyterhub_config.py`")
        + f"""
c.JupyterHub.bind_url = "http://127.0.0.1:{public}"
c.JupyterHub.hub_port = {hub}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = [{PROXY!r}]
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {str(folder / "home")!r} + "/{{username}}"
c.Spawner.cmd = [{sys.executable!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"] if {os.geteuid() == 0} else []
c.Spawner.environment.update({surroundings!r})
c.Spawner.start_timeout = c.Spawner.http_timeout = 180
c.JupyterHub.services = [{{"name": "test", "api_token": {ADMINISTRATOR!r}}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"], "scopes": {SCOPES!r}}}]
"""
    )


def _name(home: Path, user: str) -> None:
    """Tell nbgrader a student's name, which it takes from the machine's account: here all have the same one."""
    file = home / ".jupyter" / "nbgrader_config.py"
    if not file.exists():
        file.parent.mkdir(parents=True)
        file.write_text(f"c = get_config()\nc.CourseDirectory.student_id = {user!r}\n")


class Hub:
    """A running hub: it starts its users' servers."""

    def __init__(self, address: str, homes: Path) -> None:
        self.address = address
        self.homes = homes
        self.administrator = requests.Session()
        self.administrator.headers["Authorization"] = f"token {ADMINISTRATOR}"

    def start(self, *users: str) -> list[Server]:
        """Start these users' servers at the same time; each Server speaks with its user's own rights."""
        api = f"{self.address}/hub/api/users"
        servers = []
        for user in users:
            _name(self.homes / user, user)
            token = self._ask("POST", f"{api}/{user}/tokens", json={"note": "test"}).json()["token"]
            session = requests.Session()
            session.headers["Authorization"] = f"token {token}"
            servers.append(Server(f"{self.address}/user/{user}", session))
            self._ask("POST", f"{api}/{user}/server")
        for user in users:
            while not self._ask("GET", f"{api}/{user}").json()["servers"].get("", {}).get("ready"):
                time.sleep(0.2)
        return servers

    def _ask(self, method: str, address: str, **options: Any) -> requests.Response:
        answer = self.administrator.request(method, address, timeout=60, **options)
        assert answer.ok, f"{method} {address}: {answer.status_code} {answer.text}"
        return answer


@contextmanager
def jupyterhub(folder: Path) -> Iterator[Hub]:
    """Run a hub whose configuration, exchange and users' homes are in a folder; ends every server with it."""
    ports = _free_ports(3)
    _configure(folder, ports)
    environment = {**os.environ, "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16)}
    with (folder / "hub.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            # The hub's own port first: the proxy is up before the hub and would complain about every question.
            for port in (ports[2], ports[0]):
                while not _answers(f"http://127.0.0.1:{port}/hub/api/"):
                    assert process.poll() is None, (folder / "hub.log").read_text()[-4000:]
                    time.sleep(0.2)
            yield Hub(f"http://127.0.0.1:{ports[0]}", folder / "home")
        finally:
            process.terminate()
            process.wait()
            # A hub that has failed leaves its proxy behind.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.RequestException:
        return False

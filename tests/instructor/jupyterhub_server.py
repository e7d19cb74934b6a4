"""A JupyterHub of the tests' own, on loopback, from the configuration that docs/jupyterhub.md gives."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.instructor.accounts import Account, make_accounts
from tests.processes import end

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = secrets.token_hex(16)
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
        return _well(answer).json()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in taken]


def _configure(folder: Path, ports: list[int], accounts: list[Account]) -> None:
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
    for account in accounts:
        own = account.home / ".jupyter"
        own.mkdir()
        if account.name == "instructor":
            (own / "nbgrader_config.py").write_text(here("The instructor's account"))
        elif account.user is None:
            # nbgrader takes a student's name from the machine's account: here all have the same one.
            (own / "nbgrader_config.py").write_text(
                f"c = get_config()\nc.CourseDirectory.student_id = {account.name!r}\n"
            )
        account.own(own)
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
c.DummyAuthenticator.password = {PASSWORD!r}
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {str(folder / "home")!r} + "/{{username}}"
accounts = { ({account.name: account.before(account.home) for account in accounts})!r}
c.Spawner.args = ["--allow-root"] if {os.geteuid() == 0 and accounts[0].user is None} else []
c.Spawner.environment.update({surroundings!r})
c.Spawner.start_timeout = c.Spawner.http_timeout = 180


def as_account(spawner):
    spawner.cmd = [*accounts[spawner.user.name], {sys.executable!r}, "-m", "jupyterhub.singleuser"]


c.Spawner.pre_spawn_hook = as_account
"""
    )


class Hub:
    """A running hub: it starts its users' servers."""

    def __init__(self, address: str, accounts: list[Account]) -> None:
        self.address = address
        self.accounts = accounts

    def sign_in(self, user: str, password: str) -> requests.Session:
        """Fill in the hub's form as a browser does. Returns the session; its ``answer`` is the page that follows."""
        browser = requests.Session()
        browser.get(f"{self.address}/hub/login", timeout=60)
        form = {"username": user, "password": password, "_xsrf": browser.cookies.get("_xsrf", path="/hub/")}
        browser.answer = browser.post(f"{self.address}/hub/login?next=/hub/home", data=form, timeout=60)
        return browser

    def start(self, *users: str) -> list[Server]:
        """Let these users sign in and start their servers, all at the same time."""
        api = f"{self.address}/hub/api/users"
        servers = []
        for user in users:
            browser = self.sign_in(user, PASSWORD)
            asked = {"X-XSRFToken": browser.cookies.get("_xsrf", path="/hub/"), "Referer": f"{self.address}/hub/home"}
            answer = browser.post(f"{api}/{user}/tokens", json={"note": "test"}, headers=asked, timeout=60)
            session = requests.Session()
            session.headers["Authorization"] = f"token {_well(answer).json()['token']}"
            servers.append(Server(f"{self.address}/user/{user}", session))
            _well(session.post(f"{api}/{user}/server", timeout=60))
        for user, server in zip(users, servers, strict=True):
            while not _well(server.session.get(f"{api}/{user}", timeout=60)).json()["servers"].get("", {}).get("ready"):
                time.sleep(0.2)
        return servers


def _well(answer: requests.Response) -> requests.Response:
    assert answer.ok, f"{answer.request.method} {answer.url}: {answer.status_code}\n{answer.text[-2000:]}"
    return answer


@contextmanager
def jupyterhub(folder: Path, users: list[str]) -> Iterator[Hub]:
    """Run a hub whose configuration, exchange and users' homes are in a folder; ends every server with it.

    Where accounts can be had (tests.instructor.accounts), each user's server runs as another user of the machine.
    """
    ports = _free_ports(3)
    folder.chmod(0o755)
    (folder / "home").mkdir()
    accounts = make_accounts(folder / "home", users)
    _configure(folder, ports, accounts)
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
            yield Hub(f"http://127.0.0.1:{ports[0]}", accounts)
        finally:
            end(process, group=True)


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.RequestException:
        return False

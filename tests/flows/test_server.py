"""The server that dprec starts answers to dprec alone, and is gone when dprec is."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import httpx
import psutil
import pytest

from flows.deployments import _asked_for
from flows.server import CREDENTIAL
from tests.flows.conftest import ROOT, credential, wait_until

pytestmark = pytest.mark.slow


def test_without_the_credential_nothing_is_read_or_changed(address: str) -> None:
    for method, path in (("GET", "admin/version"), ("POST", "deployments/filter"), ("POST", "flows/"), ("PATCH", "x")):
        assert httpx.request(method, f"{address}/{path}", json={}, timeout=120.0).status_code == 401, path
        wrong = httpx.request(method, f"{address}/{path}", json={}, timeout=120.0, auth=("dprec", "guess"))
        assert wrong.status_code == 401, path
    assert httpx.post(f"{address}/deployments/filter", json={}, timeout=120.0, auth=credential()).is_success


@pytest.mark.parametrize("known", [False, True])
def test_a_page_of_another_origin_is_not_let_in(address: str, known: bool) -> None:
    """Not even with the credential, which a browser might have stored."""
    foreign = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PATCH"}
    answer = httpx.options(f"{address}/deployments/filter", headers=foreign, timeout=120.0)
    assert answer.headers.get("access-control-allow-origin") is None
    auth = credential() if known else None
    answer = httpx.post(f"{address}/deployments/filter", json={}, headers=foreign, timeout=120.0, auth=auth)
    assert answer.headers.get("access-control-allow-origin") is None


def test_the_credential_is_no_stages(address: str) -> None:
    from flows.execution import environment

    assert address
    assert CREDENTIAL in os.environ
    assert not [value for value in environment().values() if value == os.environ[CREDENTIAL]]


def test_the_credential_of_schedules_lies_where_only_its_owner_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    other = tmp_path / "other"
    other.write_text("kept")
    path = tmp_path / "credential"
    path.symlink_to(other)  # as anyone might leave it there who wants to read along
    for secret in ("dprec:first", "dprec:second"):
        monkeypatch.setenv(CREDENTIAL, secret)
        assert str(path) in _asked_for()
        assert path.read_text() == secret + "\n"
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        path.chmod(0o644)
    assert other.read_text() == "kept"


def listening(port: int) -> bool:
    wanted = f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in lines)


def test_a_server_that_dies_ends_the_run_and_none_outlives_a_killed_parent(prefect_home: str) -> None:
    """Its port is never free while it lives, for a stranger to be sent the credential; a user's proxy sees nothing."""
    code = (
        "import httpx, time\nfrom flows import server\n"
        "print(server.server(), server.os.environ[server.CREDENTIAL], flush=True)\n"
        "print(httpx.get(server.os.environ['PREFECT_API_URL'] + '/health').status_code, flush=True)\ntime.sleep(600)\n"
    )
    environment = os.environ | {"PREFECT_HOME": prefect_home, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    environment |= {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}  # where no one answers
    for name in ("PREFECT_API_URL", "NO_PROXY", "no_proxy"):
        environment.pop(name, None)
    for dies in ("server", "parent"):
        parent = subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE, text=True
        )
        address, _, word = parent.stdout.readline().strip().partition(" ")
        assert parent.stdout.readline() == "200\n"
        port = int(address.rpartition(":")[2].partition("/")[0])
        assert listening(port)
        [process] = psutil.Process(parent.pid).children()
        assert "Umask:\t0077\n" in Path(f"/proc/{process.pid}/status").read_text()  # no one else reads its database
        assert str(port) not in process.cmdline()
        assert (
            process.environ()["PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED"] == "False"
        )  # a schedule's webhook is its own
        assert httpx.get(f"{address}/admin/version", timeout=120.0).status_code == 401
        name, _, secret = word.partition(":")
        assert httpx.get(f"{address}/admin/version", timeout=120.0, auth=(name, secret)).is_success
        os.kill(process.pid if dies == "server" else parent.pid, signal.SIGKILL)
        assert parent.wait(timeout=60) == (1 if dies == "server" else -signal.SIGKILL)
        wait_until(lambda port=port: not listening(port))  # type: ignore[misc]
        assert parent.stderr.read().count("\n") == (dies == "server")

"""The server that dprec starts answers to dprec alone, and is gone when dprec is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from flows.server import CREDENTIAL
from tests.flows.conftest import credential

ROOT = Path(__file__).resolve().parents[2]


def test_without_the_credential_nothing_is_read_or_changed(address: str) -> None:
    for method, path in (("GET", "admin/version"), ("POST", "deployments/filter"), ("POST", "flows/"), ("PATCH", "x")):
        assert httpx.request(method, f"{address}/{path}", json={}, timeout=30.0).status_code == 401, path
        wrong = httpx.request(method, f"{address}/{path}", json={}, timeout=30.0, auth=("dprec", "guess"))
        assert wrong.status_code == 401, path
    assert httpx.post(f"{address}/deployments/filter", json={}, timeout=30.0, auth=credential()).is_success


@pytest.mark.parametrize("known", [False, True])
def test_a_page_of_another_origin_is_not_let_in(address: str, known: bool) -> None:
    """Not even with the credential, which a browser might have stored."""
    foreign = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PATCH"}
    answer = httpx.options(f"{address}/deployments/filter", headers=foreign, timeout=30.0)
    assert answer.headers.get("access-control-allow-origin") is None
    auth = credential() if known else None
    answer = httpx.post(f"{address}/deployments/filter", json={}, headers=foreign, timeout=30.0, auth=auth)
    assert answer.headers.get("access-control-allow-origin") is None


def test_the_credential_is_no_stages(address: str) -> None:
    from flows.execution import environment

    assert address
    assert CREDENTIAL in os.environ
    assert not [value for value in environment().values() if value == os.environ[CREDENTIAL]]


def listening(port: int) -> bool:
    wanted = f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in lines)


def test_no_server_outlives_a_killed_parent(prefect_home: str) -> None:
    code = "import time\nfrom flows import server\nprint(server.start(pages=False)[1], flush=True)\ntime.sleep(600)\n"
    environment = os.environ | {"PREFECT_HOME": prefect_home, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    environment.pop("PREFECT_API_URL", None)
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    port = int(parent.stdout.readline().rpartition(":")[2].partition("/")[0])
    assert listening(port)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 30
    while listening(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not listening(port)

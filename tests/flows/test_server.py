"""The server that dprec starts answers to dprec alone, and is gone when dprec is."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from flows.deployments import _asked_for
from flows.server import CREDENTIAL
from tests.flows.conftest import credential

ROOT = Path(__file__).resolve().parents[2]


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
    path.symlink_to(other)  # as anybody might leave it there who wants to read along
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


def test_no_server_outlives_a_killed_parent(prefect_home: str) -> None:
    code = (
        "import time\nfrom flows import server\nprocess, address = server.start(pages=False)\n"
        "print(process.pid, address, flush=True)\ntime.sleep(600)\n"
    )
    environment = os.environ | {"PREFECT_HOME": prefect_home, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    environment.pop("PREFECT_API_URL", None)
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid, _, address = parent.stdout.readline().partition(" ")
    port = int(address.rpartition(":")[2].partition("/")[0])
    assert listening(port)
    assert "Umask:\t0077\n" in Path(f"/proc/{pid}/status").read_text()  # nobody else reads its database
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 120
    while listening(port) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not listening(port)

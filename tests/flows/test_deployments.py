"""Schedules on a Prefect server: deployments on work pools, reports over http, messages about failures."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from flows import server
from flows.deployments import NAME, forget, notify_of_failures, require_webhook, schedules
from flows.entries import PREPARED
from flows.execution import StageFailed
from tasks.core.errors import ConfigurationError
from tasks.pipeline.common import REPORTS
from tests.command import git
from tests.flows.conftest import ROOT, Project, wait_until
from tests.flows.test_pipeline import ask, regenerate

pytestmark = pytest.mark.slow

__all__ = ["regenerate"]


@pytest.fixture
def pools(regenerate: Callable[..., Any], address: str) -> Iterator[str]:
    """The server with the two work pools; what is deployed there goes with them, or it would schedule runs for ever."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate

    assert regenerate
    with get_client(sync_client=True) as client:
        for name, kind in (("dprec", "process"), ("dprec-docker", "docker")):
            client.create_work_pool(WorkPoolCreate(name=name, type=kind))
        yield address
        for deployment in client.read_deployments():
            client.delete_deployment(deployment.id)
        for name in ("dprec", "dprec-docker"):
            client.delete_work_pool(name)


def test_every_schedule_is_a_deployment_on_a_work_pool(pools: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefect deploy --all` makes of prefect.yaml what `dprec schedule` serves, and one for Docker."""
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PREFECT_API_URL": pools}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    deployed = {row["name"]: row for row in ask(pools, "deployments") if row["work_pool_name"]}
    monkeypatch.chdir(ROOT)
    table = {name: row for name, row in schedules().items() if not (ROOT / PREPARED / row[0]).is_dir()}  # run by hand
    assert deployed.keys() == table.keys() | {"demo-docker"}
    for name, (suite, cron) in table.items():
        assert deployed[name]["parameters"] == {"suite": suite, "wait": True}
        assert [each["schedule"]["cron"] for each in deployed[name]["schedules"]] == [cron]
        assert deployed[name]["work_pool_name"] == "dprec"
    docker = deployed["demo-docker"]
    assert docker["pull_steps"] == [{"prefect.deployments.steps.set_working_directory": {"directory": "/dprec"}}]
    assert docker["job_variables"]["image"] == "dprec:0.3"


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[Any]]]:
    """A webhook and what it was told."""
    bodies: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/secret", bodies
        server.shutdown()


def test_a_webhook_is_told_of_a_run_that_fails_and_of_no_other(
    inside: Project, regenerate: Callable[..., Any], webhook: tuple[str, list[Any]]
) -> None:
    url, bodies = webhook
    notify_of_failures("http://127.0.0.1:9/former")
    notify_of_failures(url)
    inside.write("fail.train@a", "")
    with pytest.raises(StageFailed):
        regenerate("demo")
    wait_until(lambda: bool(bodies))
    (inside.root / "fail.train@a").unlink()
    regenerate("demo")
    assert [body["text"] for body in bodies] == [
        "dprec run demo: Failed: train@a failed: u.data:7: rating 6 is not in 1..5"
    ]
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        assert len(client.read_automations_by_name(NAME)) == 1  # the former one was replaced
        forget()
        assert client.read_automations_by_name(NAME) == []
        assert "webhook" not in {block.block_type.slug for block in client.read_block_documents()}
    forget()  # of nothing


@pytest.mark.parametrize("url", ["hooks.example/secret", "file:///secret", "http:///secret", "http://[secret"])
def test_what_is_no_webhook_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not an http") as error:
        require_webhook(url)
    assert "secret" not in str(error.value)


def test_reports_are_served_to_whoever_knows_their_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(server.ADDRESS, raising=False)
    page = REPORTS / "demo" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("the report")
    (REPORTS.parent / "prefect.db").write_text("not to be read")
    assert server.link(page) == page.resolve().as_uri()
    monkeypatch.setenv(server.ADDRESS, "")
    address = server.serve()
    link = server.link(page)
    assert link == f"{address}/demo/index.html"
    assert httpx.get(link).text == "the report"
    origin = address.rsplit("/", 1)[0]
    for short in ("/demo", "/demo/", "//demo/index.html", "/demo?x=1"):
        answer = httpx.get(address + short, follow_redirects=True)
        assert (answer.status_code, answer.text) == (200, "the report"), short
    for wrong in ("", "/", "/demo/index.html", "/wrong/demo/index.html"):
        assert httpx.get(origin + wrong).status_code == 404, wrong
    (REPORTS / "demo" / "data").mkdir()
    outside = ("/../prefect.db", "/%2e%2e/prefect.db", "/demo/..%2f..%2fprefect.db", "/demo/%00")
    for wrong in ("", "/", "/demo/data", "/demo/data/", *outside):
        answer = httpx.get(address + wrong, follow_redirects=True)
        assert answer.status_code == 404, wrong
        assert "not to be read" not in answer.text


def test_an_image_has_nothing_that_git_ignores() -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split() if not line.startswith("#")}
    left_out = {line.removeprefix("**/") for line in (ROOT / ".dockerignore").read_text().splitlines()}
    assert ignored <= left_out
    assert {".dvc/config.local", ".dvc/cache", ".dvc/tmp"} <= left_out


def in_image(path: Path) -> bool:
    """Whether .dockerignore lets a file into an image: of the patterns of it or its folders the last one decides."""
    inside = True
    names = [Path(*path.parts[:depth]) for depth in range(1, len(path.parts) + 1)]
    for pattern in (ROOT / ".dockerignore").read_text().splitlines():
        bare = pattern.removeprefix("!").removeprefix("**/")
        depths = range(1, 99) if pattern.startswith("**/") else [len(Path(bare).parts)]
        if not pattern.startswith("#") and any(name.match(bare) and len(name.parts) in depths for name in names):
            inside = pattern.startswith("!")
    return inside


def test_of_git_an_image_has_the_history_and_no_configuration(tmp_path: Path) -> None:
    """Addresses of remotes may hold tokens: they stand in the configuration, in logs, and in what was fetched."""
    first, second, image = (tmp_path / name for name in ("first", "second", "image"))
    first.mkdir()
    git(first, "init", "-q")
    (first / "file").write_text("text\n")
    git(first, "add", "file")
    git(first, "commit", "-q", "-m", "one")
    git(tmp_path, "clone", "-q", f"file://{first}", str(second))
    git(second, "fetch", "-q", "origin")
    (second / ".git/credentials").write_text("secret")
    (second / ".env").write_text("TOKEN=secret")
    (second / "own").mkdir()
    (second / "own/ratings.csv").write_text("user,item\n")
    for path in second.rglob("*"):
        if in_image(path.relative_to(second)) and path.is_file():
            (image / path.relative_to(second)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, image / path.relative_to(second))
    kept = {path.name for path in (image / ".git").iterdir()}
    assert kept == {"HEAD", "index", "objects", "packed-refs", "refs"}
    assert {path.name for path in image.iterdir()} == {".git", "file"}
    assert git(image, "rev-parse", "HEAD") == git(first, "rev-parse", "HEAD")
    assert git(image, "show", "HEAD:./file") == "text\n"
    assert git(image, "status", "--porcelain") == ""


def test_the_address_of_a_package_index_is_a_secret_of_the_build() -> None:
    """Arguments and variables of a build stand in the image's history."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    (install,) = (line for line in lines if "PIP_EXTRA_INDEX_URL" in line and not line.startswith("#"))
    assert install.startswith("RUN --mount=type=secret,")
    assert not any(line.startswith("ARG") for line in lines)


def test_prefect_yaml_is_for_the_prefect_that_is_pinned() -> None:
    version = yaml.safe_load((ROOT / "prefect.yaml").read_text())["prefect-version"]
    assert f"\nprefect=={version}\n" in (ROOT / "requirements.lock").read_text()

"""`dprec audit --command`: what a run is given, what is repeated, what fails, and known truths."""

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core.errors import ConfigurationError, DataError, DprecError
from tasks.external.command import OF_RUN, Repeated, _digest_of_command, _kill, repeat
from tasks.external.reading import Names
from tasks.external.run import AuditRequest, run
from tasks.external.splits import HELD_BACK, Splits
from tests.external import worlds
from tests.external.conftest import Here
from tests.external.test_audit import answer
from tests.external.worlds import quiet

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture(autouse=True)
def seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same coins each time: a true null is called a leak in one of twenty draws."""
    monkeypatch.setattr("secrets.randbits", lambda _: 11)


def ratings(folder: Path) -> Path:
    """All that a made-up system could be trained on."""
    made = worlds.world(1, 200, 0, 120, 16)
    users, items = np.nonzero(made.trained | made.public)
    rows = {"user": worlds.names("u", users), "item": worlds.names("i", items), "stars": 3, "note": 'a "b", c'}
    pl.DataFrame(rows).write_csv(folder / "ratings.csv")
    return folder / "ratings.csv"


def command(script: str, *arguments: str) -> str:
    return shlex.join([sys.executable, str(SCRIPTS / script), *arguments])


def popular(*more: str) -> str:
    return command("plain.py", "popular", "{train}", "{histories}", "{out}", *more)


def repeated(folder: Path, text: str, runs: int = 3, canaries: int = 10, limit: float = 60.0) -> AuditRequest:
    train = folder / "ratings.csv"
    return repeat(Repeated(text, runs, folder / "work", limit, canaries), AuditRequest(train, train), quiet)


def rows(path: Path) -> set[tuple[str, str]]:
    return set(pl.read_csv(path, infer_schema=False).select("user", "item").iter_rows())


def test_coins_decide_who_is_in_and_the_files_agree_with_them(tmp_path: Path) -> None:
    path = ratings(tmp_path)
    everything, splits = rows(path), Splits(path, Names(), 20, 3)
    in_runs, held, of_canaries = [], [], []
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        splits.write(folder, number)
        train, histories, public = (rows(folder / f"{name}.csv") for name in ("train", "histories", "public"))
        members = {user for user, _ in train & everything}
        coins = pl.read_csv(folder / "canaries.csv")
        made = {*coins["canary"], *coins["witness"]}
        of_members = {pair for pair in everything if pair[0] in members}
        real = {pair for pair in train if pair[0] not in made}
        assert {user for user, _ in real} <= members
        assert train <= histories
        assert histories - train == {pair for pair in public if pair[0] not in members}
        assert {pair for pair in public if pair[0] in members} == of_members - real
        assert {user for user, _ in train} & set(coins["canary"]) == set(coins.filter(included=1)["canary"])
        assert {user for user, _ in train} >= set(coins["witness"])
        in_runs.append(np.array([f"u{user}" in members for user in range(200)]))
        of_canaries.append(coins["included"].to_numpy())
        held.append(1 - len(histories - {pair for pair in train if pair[0] in made}) / len(everything))
    for coin in (np.array(in_runs), np.array(of_canaries)):  # five deviations of fair coins
        assert abs(coin.mean() - 0.5) < 2.5 / np.sqrt(coin.size)
        assert len({row.tobytes() for row in coin}) == 12
    assert abs(np.mean(held) - HELD_BACK) < 0.02
    assert oct((tmp_path / "0" / "canaries.csv").stat().st_mode & 0o777) == "0o600"
    assert (tmp_path / "0" / "train.csv").read_text().splitlines()[0] == "user,item,stars,note"


def test_lists_of_own_items_leak_and_popular_ones_do_not_with_the_standard_library_alone(
    tmp_path: Path, here: Here
) -> None:
    ratings(tmp_path)
    options = ["--train", "ratings.csv", "--runs", "6", "--canary-count", "20"]
    leaking = command("plain.py", "own", "{train}", "{histories}", "{out}")
    done = here(tmp_path, "--command", leaking, *options, "--out", "a")
    assert done.returncode == 3, done.stderr
    assert "The lists show what their users were trained on" in done.stdout
    assert "Membership of interactions is revealed" in done.stdout
    audit, _ = run(repeated(tmp_path, popular(), 6), quiet)
    assert audit.verdict.exit_code == 4  # no control shows that the canaries could have proved anything
    states = [(answer.question, answer.state) for answer in audit.answers]  # none of ratings, which are all 3
    assert states == [(question, "not shown") for question in ("own items", "users", "interactions")]
    assert any(attack.name.startswith("LiRA (online)") for attack in answer(audit, "users").attacks)
    assert audit.canaries.canaries == 6 * 10  # the coins of all runs


def test_canaries_refute_item_neighbours_of_implicit(tmp_path: Path) -> None:
    ratings(tmp_path)
    asked = repeated(tmp_path, command("neighbours.py", "{train}", "{histories}", "{out}"), 4, 40)
    audit, _ = run(replace(asked, claimed_epsilon=0.5), quiet)
    assert (audit.canaries.claim, audit.canaries.canaries, audit.verdict.exit_code) == ("refuted", 160, 3)
    alone, _ = run(replace(asked, claimed_epsilon=0.5, shadows=()), quiet)
    assert alone.canaries.epsilon < audit.canaries.epsilon  # a run alone proves less


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    ratings(tmp_path)
    (tmp_path / "precious.txt").write_text("precious")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lock").symlink_to("../precious.txt")
    with pytest.raises(OSError, match="lock"):
        repeated(tmp_path, f"{command('plain.py', 'popular')} {{seed}} {{train}} {{histories}} {{out}}")
    assert (tmp_path / "precious.txt").read_text() == "precious"


def test_a_killed_audit_goes_on_and_repeats_no_finished_run(tmp_path: Path) -> None:
    ratings(tmp_path)
    (tmp_path / "wait").touch()
    script = tmp_path / "slow.sh"  # its third run waits while there is a file `wait`
    waits = f"while [ $1 = 2 ] && [ -e {tmp_path}/wait ]; do sleep 0.05; done"
    script.write_text(f'{waits}\n{command("plain.py", "popular")} "$2" "$3" "$4"\n')
    text = f"sh {script} {{seed}} {{train}} {{histories}} {{out}}"
    program = f"from tests.external.test_command import *; repeated(Path({str(tmp_path)!r}), {text!r})"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    killed = subprocess.Popen([sys.executable, "-c", program], env=environment)
    done = [tmp_path / "work" / f"run-00{number}" / "done.json" for number in range(3)]
    deadline = time.monotonic() + 60
    while not (done[0].exists() and done[1].exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(ConfigurationError, match="another audit works in"):
        repeated(tmp_path, text)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (tmp_path / "wait").unlink()
    before = [path.stat().st_mtime_ns for path in done[:2]]
    (done[1].parent / "lists.csv").write_text("user,item\n")  # and this one is damaged
    repeated(tmp_path, text)
    after = [path.stat().st_mtime_ns for path in done]
    assert (after[0] == before[0], after[1] > before[1]) == (True, True)
    assert json.loads(done[2].read_text())["files"].keys() >= {"train.csv", "lists.csv", "canaries.csv"}
    repeated(tmp_path, text + " another")  # another command: all of them are done again
    assert all(path.stat().st_mtime_ns > last for path, last in zip(done, after, strict=True))
    with pytest.raises(ConfigurationError, match="has runs on other data, columns or canaries"):
        repeated(tmp_path, text, canaries=11)
    named = replace(AuditRequest(tmp_path / "ratings.csv", tmp_path / "ratings.csv"), names=Names({"item": "stars"}))
    with pytest.raises(ConfigurationError, match="has runs on other data, columns or canaries"):
        repeat(Repeated(text, 3, tmp_path / "work", 60.0, 10), named, quiet)


@pytest.mark.parametrize("changed", ["train.py", "steps.py", "parts/inner/fit.py"])
@pytest.mark.parametrize(
    "text", ["python {}/train.py", "sh -c 'python {}/train.py --fast'", "train --config={}/train.py"]
)
def test_a_file_that_a_command_names_decides_whether_it_is_the_same(text: str, changed: str, tmp_path: Path) -> None:
    """Also a module that lies next to it to be imported, and one of a package there."""
    (tmp_path / "parts/inner").mkdir(parents=True)
    for path in ("train.py", "steps.py", "parts/__init__.py", "parts/inner/fit.py"):
        (tmp_path / path).write_text("")
    line, digests = text.format(tmp_path), set()
    for content in ("a", "b"):
        (tmp_path / changed).write_text(content)
        digests.add(_digest_of_command(line, shlex.split(line)))
    assert len(digests) == 2


def test_the_program_of_a_folder_decides_whether_a_command_is_the_same(tmp_path: Path) -> None:
    digests = set()
    for content in ("a", "b"):
        (tmp_path / "__main__.py").write_text(content)
        digests.add(_digest_of_command("", ["python", str(tmp_path), "x" * 5_000]))
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "echo working; echo 'no memory' >&2; exit 7",
            r"run-000: exit code 7: no memory \(.*stdout.txt, .*stderr.txt\)",
        ),
        ("kill -9 $$", "run-000: ended by signal 9: it wrote nothing"),
        ("sleep 60", r"run-000: not done after 0.5 s \(--time-limit\): it wrote nothing"),
        ("true", "run-000: .*lists.csv: no such file"),
        ("rm ../std*.txt; exit 7", "run-000: exit code 7: it wrote nothing"),
        ("echo user,item > $0; cp $0 $1", "run-000: the command changed .*train.csv"),
        ("echo user,item,rank > $1; echo u1,i1,first >> $1", "run-000: .*lists.csv:2: rank is 'first', not a number"),
    ],
)
def test_a_run_that_fails_is_named_in_one_line_with_its_output(tmp_path: Path, text: str, complaint: str) -> None:
    ratings(tmp_path)
    with pytest.raises(DataError, match=complaint) as error:
        repeated(tmp_path, shlex.join(["sh", "-c", text, "{train}", "{out}"]), limit=0.5)
    assert "\n" not in str(error.value)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    ratings(tmp_path)
    monkeypatch.setattr(Splits, "write", full)
    with pytest.raises(DataError, match=f"^run-000: {tmp_path / 'work'}: File too large$"):
        repeated(tmp_path, popular())


@pytest.mark.parametrize("session", ["", "setsid "])
def test_what_a_run_leaves_in_the_background_ends_with_it(session: str, tmp_path: Path) -> None:
    ratings(tmp_path)
    script = tmp_path / "leaves.sh"
    leaves = f"{session}sleep 300 & echo $! > {tmp_path}/left-$1"
    script.write_text(f'{leaves}\n{command("plain.py", "popular")} "$2" "$3" "$4"\n')
    repeated(tmp_path, f"sh {script} {{seed}} {{train}} {{histories}} {{out}}", runs=2)
    for number in range(2):
        state = Path(f"/proc/{(tmp_path / f'left-{number}').read_text().strip()}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"


def test_what_is_begun_while_the_rest_is_ended_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a loop in a session of its own may begin its next process."""
    kill, begun = os.kill, []

    def begin() -> subprocess.Popen[bytes]:
        environment = os.environ | {OF_RUN: str(tmp_path)}
        return subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True)

    def begin_and_kill(process: int, number: int) -> None:
        if len(begun) < 3:
            begun.append(begin())
        kill(process, number)

    first, second = begin(), begin()
    monkeypatch.setattr("tasks.external.command.os.kill", begin_and_kill)
    try:
        _kill(first, tmp_path)
        for process in (first, second, *begun):
            assert process.wait(10) == -signal.SIGKILL
        assert len(begun) == 3
    finally:
        monkeypatch.undo()
        for process in (first, second, *begun):
            process.kill()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"users": Path("nobody.csv")}, "nobody.csv: no such file"),
        ({"names": Names({"item": "thing"})}, "no file has a column 'thing'"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(
    tmp_path: Path, options: dict[str, object], complaint: str
) -> None:
    train = ratings(tmp_path)
    with pytest.raises(DprecError, match=complaint):
        repeat(Repeated(popular(), 2, tmp_path / "work"), replace(AuditRequest(train, train), **options), quiet)  # type: ignore[arg-type]
    assert not (tmp_path / "work").exists()


def test_commands_that_cannot_be_run_are_refused(tmp_path: Path, here: Here) -> None:
    ratings(tmp_path)
    for text, complaint in (
        ("x.sh {train}", "--command must have {out}"),
        ("x.sh '{train} {out}", "--command: No closing quotation"),
        ("./nothing.sh {train} {out}", "--command: ./nothing.sh cannot be started: No such file"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            repeated(tmp_path, text)
    with pytest.raises(DprecError, match="exit code 7"):  # a word may be longer than any file's name
        run(repeated(tmp_path, f"sh -c 'exit 7 # {'x' * 300}' {{train}} {{out}}"), quiet)
    done = here(tmp_path, "--train", "ratings.csv", "--command", "x {train} {out}", "--public", "p.csv")
    assert done.returncode == 1
    assert "give --train alone" in done.stderr
    done = here(tmp_path, "--train", "ratings.csv", "--command", "true {train} {out}", "--work", "audit/runs")
    assert done.stderr == "dprec: --work audit/runs: not in --out, audit, which is to hold the audit alone\n"

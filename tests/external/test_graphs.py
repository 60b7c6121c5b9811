"""`dprec audit graphs` on networks of which it is known what their embeddings tell. All data here are synthetic."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tasks.core.errors import ConfigurationError, DataError
from tasks.external.findings import Answer
from tasks.external.graphs import run
from tasks.external.reading import Names
from tasks.external.writing import write
from tests.external.conftest import SCHEMA, Here
from tests.external.worlds import names, quiet

N = 200


def written(folder: Path, name: str, vectors: NDArray[np.floating], prefix: str = "u") -> Path:
    columns = {f"x{i}": column for i, column in enumerate(vectors.T)}
    pl.DataFrame({"user": names(prefix, np.arange(len(vectors)))} | columns).write_csv(folder / name)
    return folder / name


def friends(folder: Path, likely: NDArray[np.floating], rng: np.random.Generator) -> Path:
    """Links by the probabilities of an (N, N) matrix."""
    pairs = np.argwhere(np.triu(rng.random((N, N)) < likely, 1))
    pl.DataFrame({"from": names("u", pairs[:, 0]), "to": names("u", pairs[:, 1])}).write_csv(folder / "edges.csv")
    return folder / "edges.csv"


def only(*files: Path, **options: Path) -> Answer:
    (answer,) = run(quiet, *files, **options).answers  # type: ignore[arg-type]
    return answer


def test_links_are_revealed_by_what_made_them_and_not_by_random_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(N, 4))
    edges = friends(tmp_path, 0.1 / (1 + np.exp(2 - 2 * taste @ taste.T)), rng)
    shown = only(written(tmp_path, "own.csv", taste), edges)
    assert shown.state == "shown"
    assert {attack.name for attack in shown.attacks} == {"cosine", "dot product", "trained on known links"}
    quiet_answer = only(written(tmp_path, "random.csv", rng.normal(size=(N, 4))), edges)
    assert quiet_answer.state == "not shown"


def test_links_that_attributes_explain_are_no_leak(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    town = rng.permutation(N) % 4
    edges = friends(tmp_path, 0.03 + 0.1 * (town[:, None] == town), rng)
    vectors = written(tmp_path, "own.csv", np.eye(4)[town] + 0.1 * rng.normal(size=(N, 4)))
    pl.DataFrame({"user": names("u", np.arange(N)), "town": names("t", town)}).write_csv(tmp_path / "users.csv")
    shown = only(vectors, edges)
    assert shown.state == "shown"
    (friendly,) = [control for control in shown.attacks[0].controls if control.name == "AUC, number of friends"]
    assert friendly.low < 0.5  # all are alike in that
    assert only(vectors, edges, users=tmp_path / "users.csv").state == "not shown"


@pytest.fixture
def networks(tmp_path: Path) -> tuple[Path, Path, Path, Path]:
    """Vectors of people, the same turned and shuffled in another network, random ones there, and who is whom."""
    rng = np.random.default_rng(2)
    own, order = rng.normal(size=(N, 6)), rng.permutation(N)
    turned = own @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 0.1 * rng.normal(size=(N, 6))
    other = np.empty_like(turned)
    other[order] = turned
    pl.DataFrame({"source": names("u", np.arange(N)), "target": names("v", order)}).write_csv(tmp_path / "who.csv")
    return (
        written(tmp_path, "own.csv", own),
        written(tmp_path, "other.csv", other, "v"),
        written(tmp_path, "random.csv", rng.normal(size=(N, 6)), "v"),
        tmp_path / "who.csv",
    )


def test_people_are_found_in_the_other_network_by_a_map_and_not_among_random_vectors(
    tmp_path: Path, networks: tuple[Path, Path, Path, Path]
) -> None:
    own, other, random, who = networks
    audit = run(quiet, own, other_embeddings=other, anchors=who)
    states = {attack.name: attack.shown for attack in audit.answers[0].attacks}
    assert states == {"nearest in the same space": False, "mapped by known people": True}
    assert audit.verdict.exit_code == 3
    page = write(audit, None, tmp_path / "out")
    jsonschema.validate(json.loads(page[0].read_text()), json.loads(SCHEMA.read_text()))
    assert "u1<" not in page[1].read_text()
    assert only(own, other_embeddings=random, anchors=who).state == "not shown"


def test_what_attributes_tell_of_people_is_no_leak(tmp_path: Path, networks: tuple[Path, Path, Path, Path]) -> None:
    own, other, _, who = networks
    for path, name in ((own, "users.csv"), (other, "others.csv")):  # an attribute that tells everyone apart in 30 ways
        table = pl.read_csv(path)
        pairs = pl.read_csv(who)
        person = table["user"] if path == own else pairs.sort("target")["source"]
        if path == other:
            table = table.sort("user")
        digits = person.str.strip_chars_start("u").cast(pl.Int64)
        of, off, off_on = ((digits // 10**i % 10).cast(pl.String) for i in range(3))
        columns = {"of": of, "off": "on_" + off, "off_on": off_on}  # "off" is "on_1", and "off_on" is "1"
        pl.DataFrame({"user": table["user"]} | columns).write_csv(tmp_path / name)
    people = {"users": tmp_path / "users.csv", "other_users": tmp_path / "others.csv"}
    assert only(own, other_embeddings=other, anchors=who, **people).state == "not shown"


def test_bad_input_is_one_line(tmp_path: Path, networks: tuple[Path, Path, Path, Path], here: Here) -> None:
    own, other, _, who = networks
    with pytest.raises(ConfigurationError, match="needs --edges, or --other-embeddings and --anchors"):
        run(quiet, own)
    with pytest.raises(ConfigurationError, match="go together"):
        run(quiet, own, other_embeddings=other)
    for number in ("inf", "-1e308"):
        own.write_text(f"user,x\nu1,1\nu2,{number}\n")
        with pytest.raises(DataError, match=r"own.csv:3: x is .*, not a finite number of at most 1e\+50"):
            run(quiet, own, who)
    own.write_text("user,x\nu1,1\nu2,2\n")
    with pytest.raises(DataError, match=r"who.csv: of no pair both users have a vector; do the ids agree\?"):
        run(quiet, own, who)
    for options, complaint in (
        ({"users": own}, "--users and --other-users go together"),
        ({"names": Names({"source": "frm"})}, "no file has a column 'frm'; correct --source-column"),
    ):
        with pytest.raises(ConfigurationError, match=complaint):
            run(quiet, own, other_embeddings=other, anchors=who, **options)  # type: ignore[arg-type]
    (tmp_path / "friends.csv").write_text("source,target\nu1,u2\n")
    with pytest.raises(ConfigurationError, match="--other-users needs --other-embeddings"):
        run(quiet, own, tmp_path / "friends.csv", other_users=own)
    few = only(own, tmp_path / "friends.csv")
    assert few.state == "cannot be decided"
    assert few.sentence.endswith("0 links and as many other pairs could be tested; 20 are needed.")
    done = here(tmp_path, "graphs", "--help")
    assert "consented" in done.stdout
    assert "must not be used" in done.stdout

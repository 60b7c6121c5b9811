"""Stage `align`: what each way finds, that judging anchors reach none, and that an interrupted run ends as another."""

import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.config.params import load
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.evaluation.alignment import Anchors
from tasks.models.alignment.aligner import Aligner, AlignmentConfig
from tasks.pipeline.common import CHECKPOINTS, PROCESSED, QUALITY, RUNS, digest, read_json, write_json
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import MANIFEST, Progress, seal
from tasks.pipeline.screen import Screen
from tasks.stages import align, check, collect_parts, perturb
from tasks.stages.align_inputs import locate
from tasks.stages.network_files import ALIGNED, EMBEDDINGS
from tests.stages import tiny_pair as tiny
from tests.stages.test_interrupted import interrupted
from tests.stages.tiny import passed

pytestmark = pytest.mark.usefixtures("fresh")
OUT = ALIGNED / "tiny"
SAID = RUNS / "tiny" / "alignments" / "tiny"
RESULTS = (OUT / "base", SAID / "metrics.parquet", SAID / "history.json")


def make() -> None:
    tiny.build(Path())
    align.main("tiny")


@pytest.fixture(scope="module")
def interrupted_workspace(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, where a second run from nothing was interrupted after two epochs of its adversarial start."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("interrupted") / "copy")
    with chdir(folder):
        shutil.rmtree(CHECKPOINTS)
        interrupted(lambda: align.main("tiny"), Progress, "write", 3)
    return folder


@pytest.fixture
def unfinished(interrupted_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of that; the digest of what an undisturbed run ends with."""
    monkeypatch.chdir(shutil.copytree(interrupted_workspace, tmp_path / "copy"))
    return results()


def metrics(name: str, k: int | None = None, setting: str = "base") -> list[float]:
    """The values of a metric, by seed."""
    table = contracts.read(SAID / "metrics.parquet", contracts.METRICS)
    chosen = table.filter(metric=name, setting=setting).filter(pl.col("k").eq_missing(k)).sort("seed")
    return chosen["value"].to_list()


def pairs_of(seed: int = 0, setting: str = "base") -> np.ndarray:
    return contracts.read(OUT / setting / f"seed-{seed}" / "anchors.parquet", contracts.ANCHORS).to_numpy()


def split() -> Anchors:
    params = load()
    return locate(params.aligned["tiny"], params)["base", 0].anchors(params.aligned["tiny"])


def results() -> str:
    return digest(*RESULTS)


def test_known_anchors_and_attributes_find_everybody_who_judges(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert metrics("alignment/anchors-50%/precision", 1) == [1, 1]
    assert metrics("alignment/attribute-start/precision", 1) == [1, 1]
    assert min(metrics("alignment/attributes/precision", 10)) > 0.9
    assert metrics("alignment/chance", 10) == [10 / tiny.N_RIGHT] * 2
    true = {tuple(pair) for pair in tiny.anchors().tolist()}
    for seed in (0, 1):
        pairs = [tuple(pair) for pair in pairs_of(seed).tolist()]
        right = sum(pair in true for pair in pairs)
        assert metrics("alignment/attribute-start/found")[seed] == len(pairs)
        assert metrics("alignment/attribute-start/found/precision")[seed] == pytest.approx(right / len(pairs))
        assert right == tiny.PEOPLE
    assert read_json(SAID / "inputs.json")["anchors"] == {"true": 60, "judging": 24, "known": 36, "left_out": 0}


def test_judging_anchors_change_no_map_and_no_found_pair() -> None:
    align.main("tiny")
    before = digest(OUT / "base"), digest(SAID / "history.json")
    assert min(metrics("alignment/anchors-50%/precision", 1)) == 1
    pairs, judging = tiny.anchors(), {tuple(pair) for pair in split().test.tolist()}
    rows = np.array([tuple(pair) in judging for pair in pairs.tolist()])
    pairs[rows, 1] = np.roll(pairs[rows, 1], 1)
    tiny.write_anchors(pairs)
    align.main("tiny")
    assert (digest(OUT / "base"), digest(SAID / "history.json")) == before
    assert max(metrics("alignment/anchors-50%/precision", 1)) < 0.2, "they do judge"


def test_true_anchors_that_are_handed_on_are_those_that_judge_nobody() -> None:
    tiny.parameters(Path(), {"anchors": "truth"})
    align.main("tiny")
    known = split().known
    assert pairs_of().tolist() == known[np.argsort(known[:, 0])].tolist()
    assert len(known) == 36
    assert not set(known[:, 0]) & set(split().test[:, 0])


def test_an_adversarial_start_goes_on_from_its_checkpoint_or_anew_from_a_damaged_one(unfinished: str) -> None:
    [progress] = CHECKPOINTS.rglob("progress")
    aligner = Aligner(AlignmentConfig.model_validate(tiny.CONFIG), *tiny.vectors(0).values())
    start = aligner.start(np.random.default_rng(0))
    Monitor(progress, Screen("test", 1), "start").restore(start)
    assert len(start.criteria) == 2
    (progress / "last" / "state.safetensors").write_bytes(b"cut off")
    align.main("tiny")
    assert results() == unfinished


@pytest.mark.parametrize("misfit", [{"criteria": []}, {"losses": ["x", "y"]}, {"losses": [], "criteria": []}])
def test_a_start_that_does_not_fit_is_discarded(
    misfit: dict[str, Any], unfinished: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [progress] = CHECKPOINTS.rglob("progress")
    for state in progress.iterdir():
        rest = read_json(state / "state.json")
        write_json(state / "state.json", rest | {"model": rest["model"] | misfit})
        seal(state, read_json(state / MANIFEST)["unit"])
    capsys.readouterr()
    align.main("tiny")
    assert capsys.readouterr().err.count(": discarded (") == 2
    assert results() == unfinished


def test_a_map_that_diverges_is_shown_and_harms_no_other_way() -> None:
    wild = tiny.CONFIG | {"adversarial": tiny.CONFIG["adversarial"] | {"learning_rate": 1e30}}
    tiny.parameters(Path(), {"config": wild})
    align.main("tiny")
    epochs = read_json(SAID / "history.json")["base"]["0"]["adversarial"]["epochs"]
    assert None in epochs["criteria"]
    assert metrics("alignment/anchors-50%/precision", 1) == [1, 1]
    check.main("aligned/tiny")
    assert read_json(QUALITY / "aligned" / "tiny.json")["success"]


def test_nobody_is_found_for_users_whose_vectors_are_zero() -> None:
    """Not even one another: by lengths alone, they are each other's nearest."""
    tiny.parameters(Path(), {"config": tiny.CONFIG | {"normalise": ["unit"]}})
    silent = dict(zip(tiny.NETWORKS, tiny.anchors()[:5].T, strict=True))
    for network, rows in tiny.vectors(0).items():
        rows[silent[network]] = 0
        tiny.write_vectors(network, 0, rows)
    align.main("tiny")
    assert len(pairs_of()) > 40
    assert not np.isin(pairs_of()[:, 0], silent["left"]).any()
    assert not np.isin(pairs_of()[:, 1], silent["right"]).any()


def test_without_mutual_neighbours_nothing_is_found_and_the_start_stays() -> None:
    """Half-way between both bounds every attribute is encoded as 0."""
    for network, n in tiny.SIZES.items():
        tiny.write_users(network, np.full((n, tiny.BITS), 0.5, np.float32))
    align.main("tiny")
    assert len(pairs_of()) == 0
    for way in ("attributes", "attribute-start"):
        assert metrics(f"alignment/{way}/found") == [0, 0]
        assert metrics(f"alignment/{way}/found/precision") == []
    assert metrics("alignment/attributes/precision", 10) == pytest.approx([10 / tiny.N_RIGHT] * 2)
    assert read_json(SAID / "history.json")["base"]["0"]["attribute-start"]["start"] == "identity"
    check.main("aligned/tiny")
    assert read_json(QUALITY / "aligned" / "tiny.json")["success"]


def test_perturbed_attributes_alone_are_aligned_at_every_setting() -> None:
    """A budget of 5 releases two attributes of a user, one of 80 all of them."""
    perturb.main("tiny")
    entry = {"of": "perturbed/tiny", "ways": ["attributes"], "anchors": "attributes"}
    tiny.parameters(Path(), entry | {"anchor_shares": []})
    align.main("tiny")
    weak, strong = (
        metrics("alignment/attributes/precision", 10, setting) for setting in ("base", "features_epsilon=80.0")
    )
    assert len(weak) == len(strong) == 2
    assert np.mean(strong) > np.mean(weak)
    assert len(pairs_of(1, "features_epsilon=80.0")) > 0
    table = contracts.read(SAID / "metrics.parquet", contracts.METRICS)
    assert table["model"].unique().to_list() == ["attributes"]


def test_attributes_are_vectors_where_nothing_is_embedded() -> None:
    """Columns are the same in both but for a few bits: pairs found by them fit a map, and known anchors do."""
    tiny.parameters(Path(), {"of": "processed/tiny"})
    shutil.rmtree(EMBEDDINGS)
    align.main("tiny")
    for way in ("attribute-start", "anchors-50%"):
        assert min(metrics(f"alignment/{way}/precision", 10)) > 0.9
    assert read_json(SAID / "history.json")["base"]["0"]["attribute-start"]["start"] == "attributes"


def no_bits() -> None:
    for network in tiny.NETWORKS:
        schema = contracts.read_schema(PROCESSED / "tiny" / network / "schema.json")
        features = tuple(feature for feature in schema.features if "bit" not in feature.name)
        tiny.write_pair(PROCESSED / "tiny" / network, schema.model_copy(update={"features": features}))
        path = PROCESSED / "tiny" / network / "users.parquet"
        users = pl.read_parquet(path).select("user", *(feature.name for feature in features))
        contracts.write(users, path, contracts.users_schema(features))


def no_friendships() -> None:
    schema = contracts.read_schema(PROCESSED / "tiny" / "right" / "schema.json")
    tiny.write_pair(PROCESSED / "tiny" / "right", schema.model_copy(update={"tables": ("users", "user_ids")}))


def vectors(rows: np.ndarray) -> Any:
    return lambda: tiny.write_vectors("right", 0, rows.astype(np.float32))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (no_bits, ConfigurationError, "no attribute of one name"),
        (no_friendships, ConfigurationError, "'right' of tiny has no friendships"),
        (lambda: tiny.write_anchors(tiny.anchors()[:8]), ConfigurationError, "0.05 of the 8 anchors of tiny is none"),
        (lambda: tiny.write_anchors(tiny.anchors()[:0]), ConfigurationError, "0.4 of the 0 anchors of tiny is none"),
        (vectors(np.ones((9, tiny.WIDTH))), DataError, "does not hold the 70 vectors once each"),
        (vectors(np.ones((tiny.N_RIGHT, 3))), DataError, "widths differ"),
        (vectors(np.full((tiny.N_RIGHT, tiny.WIDTH), np.inf)), DataError, "not finite"),
        (lambda: passed("embeddings", "tiny", success=False), DataError, "failed their check"),
    ],
)
def test_what_cannot_be_aligned_is_refused_in_one_line(change: Any, error: type[Exception], message: str) -> None:
    change()
    with pytest.raises(error, match=message) as refusal:
        align.main("tiny")
    assert "\n" not in str(refusal.value)
    assert not OUT.exists()


@pytest.mark.parametrize(("initial", "knows"), [("identity", True), ("random", False)])
def test_a_report_tells_a_start_that_knows_columns_from_one_that_does_not(initial: str, *, knows: bool) -> None:
    start = tiny.CONFIG | {"adversarial": tiny.CONFIG["adversarial"] | {"initial": initial}}
    tiny.parameters(Path(), {"of": "processed/tiny", "ways": ["adversarial"], "anchors": "truth", "config": start})
    align.main("tiny")
    record = collect_parts.alignment("tiny", load(), 60)
    assert (record.embeddings, record.attributes, record.matches_columns) == ("", "processed", knows)


CYCLE = {
    "cycle": {
        "epochs": 2, "iterations": 5, "discriminator_steps": 1, "batch_size": 8, "learning_rate": 0.1, "hidden": [8, 8],
        "initial": "identity", "coder": {"width": 9, "steps": 20, "batch_size": 8, "learning_rate": 0.01},
    }
}  # fmt: skip


def test_the_authors_aligner_is_a_way_and_goes_on_where_it_stopped() -> None:
    tiny.parameters(Path(), {"ways": ["adversarial", "cycle"], "anchors": "cycle", "config": tiny.CONFIG | CYCLE})
    align.main("tiny")
    unbroken, history = digest(*RESULTS), read_json(SAID / "history.json")["base"]["0"]
    assert len(history["cycle"]["epochs"]["criteria"]) == 2
    assert len(metrics("alignment/cycle/precision", 1)) == 2
    check.main("aligned/tiny")
    assert read_json(QUALITY / "aligned" / "tiny.json")["success"]
    shutil.rmtree(ALIGNED)
    shutil.rmtree(CHECKPOINTS)
    interrupted(lambda: align.main("tiny"), Progress, "write", 5)  # three epochs of the other start, and one of this
    align.main("tiny")
    assert digest(*RESULTS) == unbroken

"""All private draws come through one door, which says what was drawn and follows the laws that it names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from tasks.privacy import noise
from tasks.privacy.noise import Draw, generator
from tests.models import test_contract, test_next_item_contract, test_rating_contract

ROOT = Path(__file__).resolve().parents[2]
HIDING = {"normal", "standard_normal", "laplace", "exponential", "standard_exponential", "geometric", "gumbel", "gamma"}
"""Laws of noise: what a private model draws by these, it draws through the door or from `tasks.models.draws`."""
DRAWS = HIDING | {"random", "integers", "choice", "permutation", "shuffle", "binomial", "uniform", "poisson"}
APART = {"noise.py", "keyed.py", "power.py", "worst_cases.py", "__init__.py"}
"""The door, what it opens onto, and what makes up inputs for audits."""
N = 20_000
NORMAL, IDS = stats.norm(0, 3), np.arange(100, dtype=np.uint64)


def drawn_directly(path: Path, laws: set[str]) -> Iterator[str]:
    """Calls of a generator's laws, such as `rng.laplace`, and torch's normal numbers."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = ast.unparse(node.func.value), node.func.attr
            if (name in laws and owner.rpartition(".")[2] in ("rng", "_rng")) or name in ("randn", "normal_"):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {owner}.{name}"


def test_no_mechanism_draws_beside_the_door() -> None:
    paths = [path for path in (ROOT / "tasks/privacy").rglob("*.py") if path.name not in APART]
    assert len(paths) > 15
    assert [call for path in paths for call in drawn_directly(path, DRAWS)] == []


def test_no_module_that_spends_a_budget_draws_noise_beside_the_door() -> None:
    paths = [path for path in (ROOT / "tasks/models").rglob("*.py") if "from tasks.privacy" in path.read_text("utf-8")]
    assert len(paths) > 20
    assert [call for path in paths for call in drawn_directly(path, HIDING)] == []


def test_the_rule_sees_what_it_forbids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text("x = self._rng.laplace(0, 1)\ny = torch.randn(3)\nz = noise.laplace(rng, 1)\n")
    assert list(drawn_directly(tmp_path / "a.py", HIDING)) == ["a.py:1: self._rng.laplace", "a.py:2: torch.randn"]


def test_a_recorder_is_told_release_law_scale_and_shape() -> None:
    rng = np.random.default_rng(0)
    with noise.recording() as draws:
        noise.laplace(rng, "counts", 2.0, 3)
        noise.gaussian(rng, "gradients", np.array([[1.0], [4.0]]), (2, 5))
        noise.uniform(rng, "bits", ())
    noise.laplace(rng, "nobody listens", 1.0, 1)
    assert draws == [
        Draw("counts", "laplace", 2.0, (3,)),
        Draw("gradients", "gaussian", 4.0, (2, 5)),
        Draw("bits", "uniform", 1.0, ()),
    ]


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda rng: noise.gaussian(rng, "", 3.0, N), stats.norm(0, 3)),
        (lambda rng: noise.gaussian(rng, "", np.full(N, 3.0), N, single=True), stats.norm(0, 3)),
        (lambda _: noise.gaussian_by_key((5, 7), "", 3.0, np.arange(N), 1).numpy().ravel(), NORMAL),
        (lambda _: noise.gaussian_streams((5, 7), "", 3.0, IDS, np.full(100, N // 200), 2).numpy().ravel(), NORMAL),
        (lambda rng: noise.laplace(rng, "", 3.0, N), stats.laplace(0, 3)),
        (lambda rng: noise.exponential(rng, "", (N,)), stats.expon()),
        (lambda rng: noise.uniform(rng, "", N), stats.uniform()),
    ],
)
def test_numbers_follow_their_law(draw: Callable[[np.random.Generator], np.ndarray], law: stats.rv_continuous) -> None:
    """Kolmogorov and Smirnov: a sound law fails once in 10,000 (seeds are fixed, so never)."""
    assert stats.kstest(draw(np.random.default_rng(1)), law.cdf).pvalue > 1e-4


def test_noise_by_key_is_a_function_of_release_key_and_id() -> None:
    """Two releases of one key and id share nothing; false alarm 6e-7."""
    ids, counts = np.arange(200, dtype=np.uint64), np.full(200, 3)

    def drawn(release: str, key: tuple[int, ...], rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        streams = noise.gaussian_streams(key, release, 2.0, ids[rows], counts[rows], 10)
        return noise.gaussian_by_key(key, release, 2.0, ids[rows], 30), streams.reshape(-1, 30)

    rows = np.arange(200)
    for one, part, *others in zip(
        drawn("a", (1, 2), rows),
        drawn("a", (1, 2), rows[50:53]),
        drawn("b", (1, 2), rows),
        drawn("a", (2, 1), rows),
        drawn("a", (1, 2), rows[::-1].copy()),
        strict=True,
    ):
        assert torch.equal(one[50:53], part)
        for other in others:
            assert abs(float(torch.corrcoef(torch.stack([one.ravel(), other.ravel()]))[0, 1])) < 5 / 6000**0.5


def test_discrete_laplace_is_the_law_of_its_name() -> None:
    epsilon = 0.5
    drawn = noise.discrete_laplace(np.random.default_rng(2), "", -np.expm1(-epsilon), (N,))
    values = np.arange(-6, 7)
    observed = np.array([(drawn == value).sum() for value in values])
    expected = N * np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(values))
    assert (
        stats.chisquare(np.append(observed, N - observed.sum()), np.append(expected, N - expected.sum())).pvalue > 1e-4
    )


def fit(name: str) -> None:
    """Fit a model on its contract's data."""
    if name in test_contract.CONFIGS:
        test_contract.fitted(name, test_contract.checkerboard()[0], **test_contract.short(name))
    elif name in test_next_item_contract.CONFIGS:
        test_next_item_contract.quickly(name, test_next_item_contract.grammar())
    else:
        test_rating_contract.fitted(name, test_rating_contract.ratings(0.3))


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("dp-popularity", {"item counts", "which interactions count"}),
        ("dpae", {"sum of gradients", "who is in the step"}),
        ("dpmf", {"linear terms"}),
        ("dpmf-rigorous", {"item counts"}),
        ("gerai", {"linear coefficients", "quadratic coefficients"}),
        ("dipsgnn", {"aggregates"}),
        ("edgerand", {"matrices"}),
        ("dipsgnn-released", {"visits", "labels"}),
        ("dpsgd", {"sum of gradients"}),
        ("dp-rating-means", {"sums of ratings"}),
        ("privsr", {"submissions", "h of a sum"}),
        ("bpr", set()),
        ("ease", set()),
        ("mf-ratings", set()),
    ],
)
def test_what_a_model_draws_to_hide_is_recorded(name: str, releases: set[str]) -> None:
    with noise.recording() as draws:
        fit(name)
    found = {draw.release for draw in draws}
    assert found >= releases
    assert bool(found) == bool(releases), "a model without a budget hides nothing"


def test_every_release_has_a_stream_of_its_own() -> None:
    """Also two networks of the same data, two settings with the same budget, and two entries."""
    streams = [
        generator(seed, epsilon, *names).random(1000)
        for seed, epsilon, *names in [
            (0, 5.0), (1, 5.0), (0, 5.0, "a", "base", "left", "edge"), (0, 5.0, "b", "base", "left", "edge"),
            (0, 5.0, "a", "other", "left", "edge"), (0, 5.0, "a", "base", "right", "edge"),
            (0, 5.0, "a", "base", "left", "text"), (1, 5.0, "a", "base", "left", "edge"),
            (0, 5.5, "a", "base", "left", "edge"), (0, 5.0, "a", "basel", "eft", "edge"),
        ]
    ]  # fmt: skip
    correlations = np.corrcoef(streams)[np.triu_indices(len(streams), 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(1000)
    bits = int(np.float64(5.0).view(np.uint64))
    assert np.array_equal(streams[0], np.random.default_rng([0, bits]).random(1000))  # what was released before stands

"""All private draws come through one door, which says what was drawn and follows the laws that it names."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from tasks.privacy import noise
from tasks.privacy.noise import Draw, generator
from tests.models import test_contract, test_next_item_contract, test_rating_contract

ROOT = Path(__file__).resolve().parents[2]
HIDING = {
    "normal", "standard_normal", "multivariate_normal", "lognormal", "laplace", "exponential",
    "standard_exponential", "geometric", "gumbel", "logistic", "gamma", "standard_gamma", "standard_cauchy",
    "standard_t", "chisquare", "negative_binomial", "randn", "randn_like", "normal_", "trunc_normal_",
    "xavier_normal_", "kaiming_normal_", "exponential_", "geometric_", "cauchy_", "log_normal_", "Laplace",
    "add_gaussian", "add_laplace", "add_symmetric_gaussian", "rounded", "SecureGenerator",
    "Normal", "sample", "sample_n", "rsample", "rvs", "gauss", "normalvariate", "expovariate",
}  # fmt: skip
"""Laws of noise: what a private model draws by these, it draws through the door or from `tasks.models.draws`."""
DRAWS = HIDING | {
    "random", "integers", "choice", "choices", "permutation", "permuted", "shuffle", "binomial", "uniform",
    "poisson", "multinomial", "bytes", "beta", "dirichlet", "hypergeometric", "random_raw", "rand", "rand_like",
    "randint", "randint_like", "randperm", "bernoulli", "bernoulli_", "uniform_", "random_", "token_bytes",
    "randbelow", "randbits", "getrandbits", "urandom",
}  # fmt: skip
DOORS = {"noise": "tasks.privacy", "draws": "tasks.models"}
SECRET = re.compile(r"\b(noise_rng|noise_stream|noise\.stream|noise\.generator|noise\.secure_generator)\b")
"""A generator of noise, from which nothing is drawn beside the door, by whatever law."""
ALLOWED = {
    # the doors, and what they open onto
    "tasks/privacy/noise.py: rng.*",
    "tasks/privacy/noise.py: secure.geometric",
    "tasks/privacy/secure.py: *",
    "tasks/privacy/keyed.py: np.random.Generator(np.random.Philox(key=(secret, int(stream)))).standard_normal",
    "tasks/models/draws.py: rng.standard_normal",
    # initial values of parts that know no budget
    "tasks/models/alignment/adversarial.py: rng.standard_normal",
    "tasks/models/ranking/bpr.py: rng.normal",
    "tasks/models/ranking/lightgcn.py: rng.normal",
    "tasks/models/training.py: rng.normal",
    "tasks/models/user_networks/rgcn.py: rng.*normal",
    "tasks/models/user_networks/skipgram.py: rng.standard_normal",
    # samples that no data are in, and a parameter's name
    "tasks/privacy/audits/power.py: rng.*",
    "tasks/papers/dpvae/protocol.py: options.sample",
}
N = 20_000
NORMAL, IDS = stats.norm(0, 3), np.arange(100, dtype=np.uint64)


def drawn_directly(path: Path, laws: set[str]) -> Iterator[str]:
    """Where a module has a law from anything but the doors, or any draw from a generator of noise."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = {(node.module, name.name) for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    doors = {name for name, module in DOORS.items() if (module, name) in imports and name not in own}
    kept = [node for node in nodes if isinstance(node, ast.Assign) and SECRET.search(ast.unparse(node.value))]
    secrets = {ast.unparse(target) for node in kept for target in node.targets}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            secret = owner in secrets or SECRET.search(owner)
            private = owner not in doors and owner not in ("np", "numpy") and node.attr in (DRAWS if secret else laws)
        elif isinstance(node, ast.ImportFrom):
            outside = (node.module or "").partition(".")[0] != "tasks"
            private = outside and any(name.name in laws for name in node.names)
        elif isinstance(node, ast.Import):
            private = any(name.name in ("random", "secrets") for name in node.names)
        else:
            called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "methodcaller")
            private = called and any(
                isinstance(argument, ast.Constant) and argument.value in laws for argument in node.args
            )
        if private:
            yield f"{path.relative_to(ROOT)}: {ast.unparse(node)}"


def not_allowed(folder: str, laws: set[str]) -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 1
    calls = [call for path in paths for call in drawn_directly(path, laws)]
    return [call for call in calls if not any(fnmatchcase(call, allowed) for allowed in ALLOWED)]


def test_no_mechanism_draws_beside_the_door() -> None:
    assert not_allowed("tasks/privacy", DRAWS) == []


@pytest.mark.parametrize("part", ["models", "graph", "stages", "audits", "papers"])
def test_noise_is_drawn_through_the_door_alone(part: str) -> None:
    assert not_allowed(f"tasks/{part}", HIDING) == []


def test_what_is_behind_the_door_is_imported_by_the_door_alone() -> None:
    imports = re.compile(r"from tasks\.privacy\.secure import|from tasks\.privacy import .*\bsecure\b")
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "tasks").rglob("*.py")}
    assert {path for path, text in texts.items() if imports.search(text)} == {"tasks/privacy/noise.py"}


def test_what_is_allowed_is_there() -> None:
    calls = [call for path in (ROOT / "tasks").rglob("*.py") for call in drawn_directly(path, HIDING)]
    assert [allowed for allowed in ALLOWED if not any(fnmatchcase(call, allowed) for call in calls)] == []


@pytest.mark.parametrize(
    "line",
    [
        "self._rng.laplace(0, 1)", "self.noise_rng.normal()", "self.noise_stream(data, rng).laplace()",
        "torch.randn(3)", "torch.normal(0.0, x)", "x.exponential_()", "np.random.laplace()",
        "np.random.default_rng(0).standard_normal(3)", "generator.laplace(0, 1)", "rngs[0].normal()",
        "torch.distributions.Laplace(0.0, 1.0).sample()", "stats.norm.rvs(3)", "law = rng.laplace",
        "getattr(rng, 'laplace')(0, 1)", "from numpy.random import laplace as law", "import random",
        "self.noise_rng.integers(9)", "secret = self.noise_stream(data, rng)\nsecret.random(3)",
        "self.own = noise.stream(rng)\nself.own.permutation(3)", "noise.laplace(0, 1)",
        "secure.rounded(rng, 'laplace', 1.0, 3)", "rng.add_gaussian(rng, '', x, 1.0)",
        "self.own = noise.secure_generator()\nself.own.random(3)",
        "from tasks.privacy import noise\nnoise = rng\nnoise.laplace(0, 1)",
        "from tasks.privacy import noise\ndef hidden(noise):\n    return noise.laplace(0, 1)",
    ],
)  # fmt: skip
def test_the_rule_sees_what_it_forbids(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text(line)
    assert list(drawn_directly(tmp_path / "a.py", HIDING)) != []


@pytest.mark.parametrize(
    "line",
    [
        "from tasks.privacy import noise\nnoise.laplace(self.noise_stream(data, rng), '', 1.0, 3)",
        "from tasks.models import draws\ndraws.normal(rng, (3,))", "rng.permutation(3)", "np.random.default_rng(0)",
        "from tasks.models.draws import normal\nnormal(rng, (3,))",
    ],
)  # fmt: skip
def test_the_rule_allows_the_doors(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "a.py").write_text(line)
    assert list(drawn_directly(tmp_path / "a.py", HIDING)) == []


def test_a_key_is_the_number_that_released_models_were_made_with() -> None:
    assert noise.key(np.random.default_rng(3)) == int(np.random.default_rng(3).integers(2**62))


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
    for first, part, *others in zip(
        drawn("a", (1, 2), rows),
        drawn("a", (1, 2), rows[50:53]),
        drawn("b", (1, 2), rows),
        drawn("a", (2, 1), rows),
        drawn("a", (1, 2), rows[::-1].copy()),
        strict=True,
    ):
        assert torch.equal(first[50:53], part)
        for other in others:
            assert abs(float(torch.corrcoef(torch.stack([first.ravel(), other.ravel()]))[0, 1])) < 5 / 6000**0.5


def test_discrete_laplace_is_the_law_of_its_name() -> None:
    epsilon = 0.5
    drawn = noise.discrete_laplace(np.random.default_rng(2), "", epsilon, (N,))
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
    actual = {draw.release for draw in draws}
    assert actual >= releases
    assert bool(actual) == bool(releases), "a model without a budget hides nothing"


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

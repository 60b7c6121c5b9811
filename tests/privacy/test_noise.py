"""All private draws come through one door, which says what was drawn and follows the laws that it names."""

import math
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from scipy import stats

from tasks.privacy import noise, secure
from tasks.privacy.noise import Draw, generator
from tests.models.contract import LISTS, RATINGS, SEQUENCES, checkerboard, fitted, quickly, short
from tests.models.test_noise_streams import PRIVATE
from tests.privacy import draws
from tests.privacy import test_secure as drawn_laws
from tests.privacy.draws import DECIDING, DRAWS, HIDING

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    # the doors, and what they open onto
    "tasks/privacy/noise.py: rng.*",
    "tasks/privacy/noise.py: secure.geometric",
    "tasks/privacy/secure.py: *",
    "tasks/privacy/keyed.py: np.random.Generator(np.random.Philox(key=(secret, int(stream)))).standard_normal",
    "tasks/models/draws.py: rng.standard_normal",
    "tasks/privacy/noise.py: from tasks.privacy* import *secure*",
    "tasks/privacy/noise.py: from tasks.privacy.secure import SecureGenerator",
    "tasks/privacy/mechanisms/multidimensional.py: from tasks.privacy.secure import check_scale",  # which draws nothing
    "tasks/privacy/noise.py: keyed.*",
    # initial values of parts that know no budget
    "tasks/models/alignment/adversarial.py: rng.standard_normal",
    "tasks/models/ranking/bpr.py: rng.normal",
    "tasks/models/ranking/lightgcn.py: rng.normal",
    "tasks/models/training.py: rng.normal",
    "tasks/models/user_networks/rgcn.py: rng.normal",
    "tasks/models/user_networks/rgcn.py: rng.standard_normal",
    "tasks/models/user_networks/skipgram.py: rng.standard_normal",
    # models that spend a budget: initial values, batches, negatives, masks and groups, which no data are in
    "tasks/models/ranking/dpmf.py: rng.permutation",
    "tasks/models/ranking/factors.py: rng.uniform",
    "tasks/models/ranking/private_attributes.py: self._rng.choice",
    "tasks/models/training.py: rng.integers",
    "tasks/models/training.py: self._rng.permutation",
    "tasks/models/user_networks/skipgram.py: rng.integers",
    "tasks/models/user_networks/sne.py: rng.integers",
    "tasks/models/user_networks/sne.py: rng.permutation",
    "tasks/models/vae/autoencoder.py: rng.random",
    "tasks/models/sessions/private.py: OwnDraws(self._key, users, rows).random",
    "tasks/models/sessions/private.py: self._rng.integers",
    "tasks/models/vae/userwise.py: rng.random",
    "tasks/models/vae/userwise.py: draws.random",
    "tasks/models/vae/userwise.py: self._rng.integers",
    "tasks/models/vae/userwise.py: self._rng.permutation",
    # a release: canaries of its audit, and which items each user holds out, by coins that hide nothing of a sum
    "tasks/release/audit.py: rng.random",
    "tasks/release/building.py: import secrets",
    "tasks/release/building.py: secrets.randbits",
    # samples that no data are in, and a parameter's name
    "tasks/audits/sgd.py: rng.permutation",
    "tasks/audits/user_counts.py: rng.permutation",
    "tasks/papers/dpvae/protocol.py: options.sample",
}
SPENDS = re.compile(
    r"^\s*((from|import) tasks\.privacy\b|from tasks import (\([^)]*|[^(\n]*)\bprivacy\b)", re.MULTILINE
)
"""What a module imports that spends a budget, or knows of one."""


def drawn_directly(path: Path, laws: set[str]) -> Iterator[str]:
    """Where a module draws besides the doors; where it knows of budgets any law is a draw."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    private = not name.startswith("tasks/privacy/") and SPENDS.search(text)
    for call in draws.draws(text, DECIDING if private else laws):
        yield f"{name}: {call}"


def not_allowed(folder: str, laws: set[str]) -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 1
    return refused(call for path in paths for call in drawn_directly(path, laws))


def refused(calls: Iterable[str]) -> list[str]:
    return [call for call in calls if not any(fnmatchcase(call, allowed) for allowed in ALLOWED)]


def test_no_mechanism_draws_beside_the_door() -> None:
    assert not_allowed("tasks/privacy", DRAWS) == []


@pytest.mark.parametrize(
    "part", ["models", "release", "graph", "stages", "audits", "papers", "evaluation", "config", "quality"]
)
def test_noise_is_drawn_through_the_door_alone(part: str) -> None:
    assert not_allowed(f"tasks/{part}", HIDING) == []


def test_what_all_rooms_share_draws_nothing() -> None:
    paths = sorted((ROOT / "tasks").glob("*.py"))
    assert [call for path in paths for call in drawn_directly(path, DRAWS - {"bytes"})] == []


def test_every_law_of_numpy_and_of_python_is_known() -> None:
    """Differences of Weibull variables are Laplace noise, too."""
    state = {"bit_generator", "spawn", "seed", "get_state", "set_state"}
    laws = {name for cls in (np.random.Generator, np.random.RandomState) for name in dir(cls) if name[0] != "_"}
    assert laws - state <= DRAWS
    assert all(list(draws.draws(f"self.noise_rng.{law}(3)", HIDING)) for law in laws - state)


def test_what_is_allowed_is_there() -> None:
    paths = {ROOT / allowed.partition(":")[0] for allowed in ALLOWED}
    calls = [call for path in paths for call in drawn_directly(path, HIDING)]
    assert [allowed for allowed in ALLOWED if not any(fnmatchcase(call, allowed) for call in calls)] == []


@pytest.mark.parametrize(
    "line",
    [
        "self._rng.laplace(0, 1)", "self.noise_rng.normal()", "self.noise_stream(data, rng).laplace()",
        "torch.randn(3)", "torch.normal(0.0, x)", "F.gumbel_softmax(x)", "x.exponential_()", "np.random.laplace()",
        "np.random.default_rng(0).standard_normal(3)", "generator.laplace(0, 1)", "rngs[0].normal()",
        "torch.distributions.Laplace(0.0, 1.0).sample()", "stats.norm.rvs(3)", "law = rng.laplace",
        "rng.weibull(2.0)", "rng.wald(1.0, 1.0)",
        "getattr(rng, 'laplace')(0, 1)", "from numpy.random import laplace as law", "import random",
        "from random import Random", "from secrets import SystemRandom", "rng.weibull(1.0, 3)",
        "self.noise_rng.integers(9)", "self.noise_stream(data, rng).random(3)", "noise.laplace(0, 1)",
        "secure.draw_rounded(rng, 'laplace', 1.0, 3)", "rng.add_gaussian(rng, '', x, 1.0)",
        "from tasks.privacy import noise\nnoise = rng\nnoise.laplace(0, 1)",
        "from tasks.privacy import noise\ndef hidden(noise):\n    return noise.laplace(0, 1)",
        "self._noise_rngs['a'].random()",
        # behind the door
        "from tasks.privacy import keyed\nkeyed.normals((1,), ids, 3)",
        "from tasks.privacy import keyed as k\nk.streams(a)",
        "from tasks.privacy.keyed import normals", "import tasks.privacy.keyed as k",
        "from tasks.privacy.noise import keyed", "from tasks.privacy.noise import SecureGenerator",
        "import tasks.privacy.secure as s",
        "import tasks.privacy.secure", "from tasks.privacy.secure import add", "from tasks.privacy import secure as s",
        "import tasks.privacy\ntasks.privacy.keyed.normals(a)",
        "from tasks import privacy\nprivacy.secure.geometric(rng)",
    ],
)  # fmt: skip
def test_the_rule_sees_what_it_forbids(line: str) -> None:
    assert list(draws.draws(line, HIDING)) != []


@pytest.mark.parametrize(
    "line",
    [
        "keep = self._rng.random(n) < p", "torch.bernoulli(p)", "torch.rand(n) < p", "rng.binomial(1, p, n)",
        "coin = rng.choice", "torch.nn.init.uniform_(x)", "from torch import bernoulli",
        "F.dropout(x)", "nn.functional.dropout(x, 0.5)", "from torch.nn.functional import dropout",
        "nn.Dropout(0.5)", "F.rrelu(x)", "nn.init.xavier_uniform_(x)", "from torch.nn import Dropout2d",
        "F.feature_dropout(x, 0.5)", "rng.multivariate_hypergeometric(n, 3)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["models", "stages"])
def test_where_a_budget_is_spent_every_law_is_a_draw(
    folder: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    path = tmp_path / "tasks" / folder / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    public = list(drawn_directly(path, HIDING))
    for private in (
        "from tasks.privacy.accounting.ledger import LedgerEntry",
        "from tasks import privacy",
        "from tasks import (\n    contracts,\n    privacy,\n)",
    ):
        path.write_text(f"{private}\n{line}")
        assert (public, len(list(drawn_directly(path, HIDING)))) == ([], 1)


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("vae/userwise.py", "self.noise_rng.random(3)"),
        ("sessions/dipsgnn.py", "self.noise_rng.integers(3)"),
        ("user_networks/sne.py", "rng.laplace(0, 1, 3)"),
        ("user_networks/rgcn.py", "self.noise_rng.normal()"),
    ],
)
def test_what_a_module_may_draw_opens_it_to_nothing_else(
    module: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks/models" / module
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / "tasks/models" / module).read_text(encoding="utf-8") + f"\n\n{line}\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert len(refused(drawn_directly(path, HIDING))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from tasks.privacy import noise\nnoise.laplace(self.noise_stream(data, rng), '', 1.0, 3)",
        "from tasks.models import draws\ndraws.normal(rng, (3,))", "rng.permutation(3)", "np.random.default_rng(0)",
        "from tasks.models.draws import normal\nnormal(rng, (3,))",
        "from tasks.privacy.keyed import prefix_ids", "from tasks.privacy.keyed import head_ids",
    ],
)  # fmt: skip
def test_the_rule_allows_the_doors(line: str) -> None:
    assert list(draws.draws(line, HIDING)) == []


def test_a_key_is_the_number_that_released_models_were_made_with() -> None:
    assert noise.key(np.random.default_rng(3)) == int(np.random.default_rng(3).integers(2**62))


def test_a_recorder_is_told_release_law_scale_and_shape() -> None:
    rng = np.random.default_rng(0)
    with noise.recording() as draws:
        noise.laplace(rng, "counts", 2.0, 3)
        noise.gaussian(rng, "gradients", np.array([[1.0], [4.0]]), (2, 5))
        noise.uniform(rng, "bits", ())
    noise.laplace(rng, "no one listens", 1.0, 1)
    assert draws == [
        Draw("counts", "laplace", 2.0, (3,)),
        Draw("gradients", "gaussian", 4.0, (2, 5)),
        Draw("bits", "uniform", 1.0, ()),
    ]


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


DISCRETE = (stats.laplace, lambda rng, scale: noise.discrete_laplace(rng, "", 1 / scale, (20_000,)))


@pytest.mark.parametrize("generator", [lambda: np.random.default_rng(1), noise.secure_generator])
@pytest.mark.parametrize("law", secure.LARGEST_SCALE)
def test_the_largest_noise_keeps_its_law_and_larger_noise_is_refused(law, generator, monkeypatch) -> None:
    """A sound law fails once in 10,000 keys (they are fixed, so never). Integers keep their last digits."""
    monkeypatch.setattr("secrets.randbits", lambda bits: 2**bits // 3)
    largest, (distribution, draw) = secure.LARGEST_SCALE[law], drawn_laws.SUMS.get(law, DISCRETE)
    drawn = draw(generator(), largest)
    assert np.isfinite(drawn.std())
    assert stats.kstest(drawn / largest, distribution.cdf).pvalue > 1e-4
    if law == "discrete laplace":
        assert stats.chisquare(np.bincount(drawn % 64, minlength=64)).pvalue > 1e-4
    for scale in (largest * 1.001, 1e50, 1e300):
        with pytest.raises(ValueError, match="the budget is too small"):
            draw(generator(), scale)


@pytest.mark.parametrize("law", drawn_laws.DRAWS)
@pytest.mark.parametrize("scale", [2.0**101, math.inf, math.nan])
def test_noise_beyond_its_arithmetic_is_refused(law: str, scale: float) -> None:
    rng = np.random.default_rng()
    with pytest.raises(ValueError, match="the budget is too small"):
        drawn_laws.DRAWS[law][1](rng, scale)
    with pytest.raises(ValueError, match="the budget is too small"):
        noise.gaussian(rng, "", np.array([1.0, scale]), 2, single=True)


@pytest.mark.parametrize("name", ["dp-popularity", "dpmf-rigorous"])
@pytest.mark.parametrize("epsilon", [1e-18, 1e-19, 1e-20, 1e-25, 1e-320])
def test_no_exact_count_is_released_at_the_smallest_budgets(name: str, epsilon: float) -> None:
    with pytest.raises(ValueError, match="the budget is too small"):
        fitted(name, checkerboard()[0], **short(name) | {"epsilon": epsilon})


class Watched(np.random.Generator):
    """A generator of noise that remembers which modules drew from it."""

    drawn_by: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name in DRAWS:
            self.drawn_by.add(sys._getframe(1).f_globals["__name__"])
        return super().__getattribute__(name)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        return [Watched(child.bit_generator) for child in super().spawn(n_children)]


@pytest.mark.parametrize("name", [*LISTS, *SEQUENCES, *RATINGS])
def test_generators_of_noise_are_asked_by_the_door_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a model calls them: no reader of its code sees every name."""
    stream = noise.stream
    monkeypatch.setattr(noise, "stream", lambda rng, *names: Watched(stream(rng, *names).bit_generator))
    monkeypatch.setattr(Watched, "drawn_by", set())
    with noise.recording() as draws:
        quickly(name)
    assert Watched.drawn_by <= {"tasks.privacy.noise"}
    assert bool(draws) == (name in PRIVATE), "a model without a budget hides nothing"


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

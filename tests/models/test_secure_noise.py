"""Every private model draws secure noise or says why it cannot; none of that noise comes from a seed or is kept.

Two fits of one seed share all of their noise by chance with a probability below 2^-60.
"""

from typing import Any

import numpy as np
import pytest
import torch

from tasks.core.errors import ConfigurationError
from tasks.models.base import Model
from tasks.models.training import EpochModel
from tasks.privacy import noise
from tasks.privacy.accounting import gaps
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.remarks import because
from tests.models.contract import LISTS, RATINGS, SEQUENCES, Stretch, make, system
from tests.models.test_noise_streams import PRIVATE, case, model_of, shared
from tests.systems import ids

SECURE = (
    *("dp-popularity", "dpmf-rigorous", "dpae", "dpals", "dpvae-rigorous", "dpvae-compact"),
    *("dpsgd", "dp-sasrec", "dp-rating-means", "gram-svd", "gram-ease", "gram-ease-raw", "gaussian-popularity"),
)
REFUSED = {
    "objective": ("dpmf", "dpne", "dpmf-implicit", "dpmf-explicit"),
    "coefficients of a loss": ("gerai",),
    "hash that is not cryptographic": (
        *("dipsgnn", "dipsgnn-authors-code", "dipsgnn-rigorous", "dipsgnn-cached", "dipsgnn-released"),
        *("priv-u", "edgerand"),
    ),
    "one process simulates them all": ("dpmf-ratings", "privsr", "privsr-rigorous"),
    "each user draws noise of an own scale": ("dpvae",),
}
PUBLIC = [name for name in LISTS | SEQUENCES | RATINGS if name not in PRIVATE]


def secured(name: str, **changes: Any) -> Model:
    model: Model = model_of(name, case(name)[0] | changes)
    model.noise_mode = "secure"
    return model


def test_every_private_model_is_in_one_list() -> None:
    assert sorted([*SECURE, *(name for names in REFUSED.values() for name in names)]) == sorted(PRIVATE)


@pytest.mark.parametrize(("reason", "name"), [(reason, name) for reason, names in REFUSED.items() for name in names])
def test_a_model_without_secure_noise_says_why_and_draws_none(reason: str, name: str) -> None:
    model = secured(name)
    assert reason in model.insecure()
    with noise.recording() as draws, pytest.raises(ConfigurationError, match=f"noise: secure: .*{reason}"):
        model.fit(case(name)[1], rng=np.random.default_rng(0))
    assert draws == []


@pytest.mark.parametrize("name", PUBLIC)
def test_a_model_without_a_guarantee_is_refused(name: str) -> None:
    assert make(name).insecure()


@pytest.mark.parametrize("name", SECURE)
def test_two_fits_of_one_seed_share_no_secure_noise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no stream of the seed is asked for."""
    monkeypatch.setattr(noise, "stream", lambda *_: pytest.fail("a stream of the seed"))
    data = case(name)[1]
    fits = []
    for _ in range(2):
        with noise.recording() as draws:
            model = secured(name).fit(data, rng=np.random.default_rng(0))
        assert all(torch.isfinite(tensor).all() for tensor in model.released().values())
        fits.append(draws)
    assert {draw.release for draw in fits[0]}
    assert not shared(*fits)


@pytest.mark.parametrize("name", SECURE)
def test_secure_noise_is_what_research_noise_is(name: str) -> None:
    """The same releases, laws, scales and, where no coin decides them, shapes, so that one ledger is of both."""

    def drawn(model: Model) -> list[tuple[str, str, float]]:
        with noise.recording() as draws:
            model.fit(case(name)[1], rng=np.random.default_rng(0))
        return [(draw.release, draw.law, pytest.approx(draw.scale)) for draw in draws if draw.release != "count"]

    research, secret = model_of(name), secured(name)
    actual, expected = drawn(secret), drawn(research)
    if name != "dpvae-rigorous":  # whose bound follows a noisy count
        assert actual == expected
    assert [draw[:2] for draw in actual] == [draw[:2] for draw in expected]
    assert secret.ledger() == research.ledger()


@pytest.mark.parametrize("name", [name for name in SECURE if issubclass(system(name), EpochModel)])
def test_a_checkpoint_has_nothing_of_secure_noise_and_training_goes_on_with_other(name: str) -> None:
    data, first, runs = case(name)[1], Stretch(), []
    model = secured(name, epochs=2)
    model.fit(data, rng=np.random.default_rng(0), progress=first)
    of_rng = model.noise_rng.bit_generator.state["state"]
    for tensors, rest in first.states:
        assert set(rest) == {"epochs_done", "rng"}
        assert rest["rng"]["bit_generator"] == "PCG64"
        numbers = {int(number) for number in of_rng["keysetup"]}
        assert not any(numbers & {int(value) for value in tensor.ravel().tolist() if value == value // 1}
                       for tensor in tensors.values() if tensor.isfinite().all())  # fmt: skip
    for _ in range(2):
        with noise.recording() as draws:
            again = secured(name, epochs=2).fit(
                data, rng=np.random.default_rng(0), progress=Stretch(99, first.states[0])
            )
        assert again.epochs_done == 2
        runs.append(draws)
    assert runs[0]
    assert not shared(*runs)


@pytest.mark.parametrize("name", SECURE)
def test_the_ledger_of_secure_noise_names_what_remains(name: str) -> None:
    model = secured(name)
    model.fit(case(name)[1], rng=np.random.default_rng(0))
    for entry in model.ledger():
        made = gaps.secure_entry(entry)
        assert (entry.noise, made.noise) == ("research", "secure")
        assert made.model_copy(update={"gaps": entry.gaps, "noise": "research"}) == entry
        assert made.gaps.count(gaps.SECURE) == 1
        assert not {gaps.SEED, gaps.SEED_OF_RELEASE, gaps.FLOATS, gaps.DRAWN} & set(made.gaps)
        assert ("sums-float" in ids(made.gaps)) == bool({gaps.FLOATS, gaps.DRAWN} & set(entry.gaps))
        assert LedgerEntry.model_validate_json(made.model_dump_json()) == made


def test_a_line_says_that_its_noise_is_secure_and_one_of_research_is_as_it_was() -> None:
    entry = unprotected_entry("interaction", because("true-data"))
    assert gaps.secure_entry(entry) == entry
    assert "noise" not in entry.model_dump(mode="json")
    assert entry.model_copy(update={"noise": "secure"}).model_dump(mode="json")["noise"] == "secure"

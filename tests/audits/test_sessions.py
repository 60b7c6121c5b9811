"""What the audits of session graphs see: the shipped noise on the rows that two sequences have in common."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.audits import sessions
from tasks.privacy.audits.audit import audit, verdict

N = 4_000


@pytest.mark.parametrize(("accounting", "releases"), [("published", 3), ("rigorous", 3), ("cached", 1)])
def test_the_statistic_is_normal_and_lies_as_far_apart_as_the_visit_moves_what_both_worlds_have(
    accounting: str, releases: int
) -> None:
    """√(8 R) C/σ standard deviations; mean, variance and law are each off by chance 1e-5 or less where right."""
    model, samples = sessions.aggregates(accounting, 0, N, 3.0, 1e-5, 3)  # type: ignore[arg-type]
    assert model.releases == (3 if accounting == "published" else releases)
    deviation, tolerance = model.sigma * math.sqrt(2 * releases), stats.norm.isf(5e-6)
    for world, sign in zip(samples, (1, -1), strict=True):
        assert world.mean() == pytest.approx(sign * 2 * releases, abs=tolerance * deviation / N**0.5)
        assert world.std() == pytest.approx(deviation, rel=tolerance / (2 * N) ** 0.5)
        assert stats.kstest((world - world.mean()) / world.std(), "norm").pvalue > 1e-5
    assert abs(np.corrcoef(*samples)[0, 1]) < tolerance / N**0.5  # worlds share no noise


def test_noise_for_one_release_is_refuted_by_ten() -> None:
    """At ε = 5 too: `test_audits.py::test_published_claims_are_refuted_by_the_shipped_models[dipsgnn]`."""
    _, samples = sessions.aggregates("published", 1, 1_000, 1.0, 1e-5, 10)
    assert verdict(audit(*samples, 0.999, 1e-5).epsilon, 1.0, None) == "refuted"

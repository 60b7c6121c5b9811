"""The error of predicted ratings is the mean of the distances, with predictions cut off at the ends of the scale."""

import numpy as np
import pytest

from tasks.evaluation.rating import errors, mae


def test_mae_equals_a_loop_over_ratings() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 6, 200).astype(np.float32)
    guess = rng.normal(3, 4, 200).astype(np.float32)
    plain = sum(abs(float(true) - float(other)) for true, other in zip(truth, guess, strict=True)) / 200
    cut = (
        sum(abs(float(true) - min(5.0, max(1.0, float(other)))) for true, other in zip(truth, guess, strict=True)) / 200
    )
    assert mae(truth, guess) == pytest.approx(plain, rel=1e-12)
    assert mae(truth, guess, 1, 5) == pytest.approx(cut, rel=1e-12)
    assert mae(truth, guess, 1, 5) < mae(truth, guess)  # no rating lies beyond the ends


def test_single_precision_predictions_are_averaged_in_double() -> None:
    """A plain float32 sum of a million equal errors is off by more than the last digit of a float64."""
    truth = np.full(1_000_000, 4, np.float32)
    guess = np.full(1_000_000, 3.9, np.float32)
    assert mae(truth, guess) == pytest.approx(4 - float(np.float32(3.9)), rel=1e-12)


@pytest.mark.parametrize(
    ("ratings", "predictions", "message"),
    [
        ([], [], "1 or more"),
        ([1.0, 2.0], [1.0], "equal length"),
        ([[1.0]], [[1.0]], "1-D"),
        ([1.0], [np.nan], "not finite"),
        ([np.inf], [1.0], "not finite"),
    ],
)
def test_what_is_no_set_of_ratings_is_refused(ratings: list, predictions: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mae(ratings, predictions, 1, 5)


def test_errors_are_apart_for_what_users_keep_to_themselves() -> None:
    truth, guess, sensitive = np.array([1.0, 3, 5]), np.array([2.0, 3, 9]), np.array([True, False, False])
    users = np.array([4, 4, 7])
    measured = {each.metric: each for each in errors(users, truth, guess, sensitive, 1, 5)}
    assert {name: each.values.mean() for name, each in measured.items()} == {
        "mae": pytest.approx(1 / 3), "mae/uncut": pytest.approx(5 / 3), "mae/sensitive": 1, "mae/public": 0,
    }  # fmt: skip
    assert measured["mae/public"].users.tolist() == [4, 7]
    assert "mae/public" not in {each.metric for each in errors(users, truth, guess, np.ones(3, bool), 1, 5)}

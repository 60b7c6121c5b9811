"""Lists of all users: what they are worth to those with the least data."""

import numpy as np
import pytest

from tasks.config.params import Evaluation, Training
from tasks.core import contracts
from tasks.models.ranking.popularity import Popularity
from tasks.pipeline.common import PROCESSED
from tasks.stages.evaluators.lists import TopK
from tests.stages import tiny

N_ITEMS = 30


def test_a_quarter_of_users_and_of_held_out_items_is_judged_as_by_hand() -> None:
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((tiny.N_USERS, N_ITEMS)) < rng.random(N_ITEMS) * 0.6)
    split = np.array(contracts.SPLITS)[rng.choice(3, len(users), p=[0.6, 0.1, 0.3])]
    rows = tiny.interactions(users, items, split)
    inputs = tiny.Numbered(tiny.SCHEMA.model_copy(update={"n_items": N_ITEMS}), rows, PROCESSED, PROCESSED)
    evaluation = Evaluation(k=[5, 10], negatives=10, seed=1, recall="relevant")
    evaluator = TopK(inputs, evaluation, Training(patience=1, validation_k=10))
    model = Popularity(Popularity.Config()).fit(evaluator.training_data(Popularity, 0), rng=np.random.default_rng(0))
    evaluated = evaluator.evaluate(model)
    lists = {user: part["item"].to_list() for (user,), part in evaluated.released.sort("rank").group_by("user")}
    train, test = (rows.filter(split=name) for name in ("train", "test"))
    of_user = [train.filter(user=user).height for user in range(tiny.N_USERS)]
    of_item = [train.filter(item=item).height for item in range(N_ITEMS)]
    targets = {user: part["item"].to_list() for (user,), part in test.group_by("user")}

    def ndcg(wanted: dict[int, list[int]], k: int) -> float:
        values = [
            sum(1 / np.log2(place + 2) for place, item in enumerate(lists[user][:k]) if item in relevant)
            / sum(1 / np.log2(place + 2) for place in range(min(k, len(relevant))))
            for user, relevant in wanted.items()
        ]
        return float(np.mean(values))

    few = sorted(of_user[user] for user in targets)[(len(targets) - 1) // 4]
    rare = sorted(of_item[item] for item in test["item"])[(len(test) - 1) // 4]
    poor = {user: relevant for user, relevant in targets.items() if of_user[user] <= few}
    unusual = {user: [item for item in relevant if of_item[item] <= rare] for user, relevant in targets.items()}
    unusual = {user: relevant for user, relevant in unusual.items() if relevant}
    measured = {(row["metric"], row["k"]): row["value"] for row in evaluated.metrics}
    for k in (5, 10):
        assert measured["few-users/ndcg", k] == pytest.approx(ndcg(poor, k))
        assert measured["few-items/ndcg", k] == pytest.approx(ndcg(unusual, k))
        shown = {item for items in lists.values() for item in items[:k]}
        assert measured["catalogue/coverage", k] == pytest.approx(len(shown) / N_ITEMS)
    assert len(poor) < len(targets) / 2

"""Trials of the rule's constants (docs/release.md): one of them other than it is shipped, all else equal.

python -m tests.benchmarks.bench_rule TABLE.csv ... prints docs/release-trials.csv: NDCG@10 of svd on a tenth of each
row, δ = 1/(10 n), research noise, over runs with a split and a draw of noise each, the same in all trials (seeds from
101 on: no other number is of these splits); its ratio to that of the shipped constants, and the standard error of the
difference in the same unit. Without TABLE the rows are random.
"""

import sys
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tasks.external import coding
from tasks.external.reading import Names
from tasks.release import making, models, rule, sums, utility
from tasks.release.serving import lists

EPSILONS = (1.0, 4.0, 8.0)
FEW, RUNS, MORE = 1000, 6, 16
"""Runs of a table, and of one with few users."""
OTHERS: dict[str, tuple[float, ...]] = {
    "COUNTED": (5, 20), "PAIRED": (3,), "FEWEST": (50, 200), "RANK": (16, 64), "SIGNAL": (2.5, 10), "SHARE": (4, 16),
    "HEAD": (125, 500), "GROWTH": (0.15, 0.45), "BLEND": (0.05, 0.2),
}  # fmt: skip
"""What is tried of each."""


def measured(rows: sums.Rows, epsilon: float, delta: float, seed: int, kind: models.Kind) -> float:
    """NDCG@10 of a model of a release; popularity is that of noisy counts that have the whole budget."""
    used, held = utility.split(rows, np.random.default_rng([seed, 1]), fewest=2)
    budget = making.Budget(epsilon, delta, np.random.default_rng([seed, 3 if kind == "popularity" else 2]))
    made = making.counts_alone(used, budget) if kind == "popularity" else making.make(used, budget, users=rows.shape[0])
    some = np.diff(held.indptr) > 0
    return float(utility.gain(lists(models.fit(made, kind), used, utility.TOP), held)[some].mean())


def table(path: Path) -> sums.Rows:
    """Users x items of a table."""
    data = coding.coded(path, Names(), None)
    return sums.rows_of(data.users, data.items, len(data.user_ids), len(data.item_ids))


def random_table() -> sums.Rows:
    """300 users x 200 items."""
    users, items = np.random.default_rng(0).integers([[300], [200]], size=(2, 6000)).astype(np.int32)
    return sums.rows_of(users, items, 300, 200)


def runs(rows: sums.Rows, epsilon: float) -> NDArray[np.float64]:
    """NDCG@10 of each run."""
    n = rows.shape[0]
    return np.array([measured(rows, epsilon, 0.1 / n, 101 + run, "svd") for run in range(MORE if n < FEW else RUNS)])


def main() -> None:
    tables = {Path(name).stem: table(Path(name)) for name in sys.argv[1:]} or {"random": random_table()}
    print("data,epsilon,constant,shipped,value,runs,ndcg,ratio,error")
    for (name, rows), epsilon in product(tables.items(), EPSILONS):
        shipped = runs(rows, epsilon)
        for constant, value in [(constant, value) for constant, values in OTHERS.items() for value in values]:
            with patch.object(rule, constant, value):
                tried = runs(rows, epsilon)
            error = np.std(tried - shipped, ddof=1) / len(tried) ** 0.5 / shipped.mean()
            numbers = (f"{x:.4f}" for x in (tried.mean(), tried.mean() / shipped.mean(), error))
            row = name, f"{epsilon:g}", constant, f"{getattr(rule, constant):g}", f"{value:g}", len(tried), *numbers
            print(*row, sep=",", flush=True)


if __name__ == "__main__":
    main()

"""How many users a release needs: utility of `dprec release` on random parts of a table, by the number of its users.

python -m tests.benchmarks.bench_users RATINGS [USERS ...] prints rows of docs/release.md: NDCG@10 on a tenth of each
row, δ = 10⁻⁵, research noise; mean and standard error over parts with a split and a draw of noise each. Without RATINGS
the rows are random.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tasks.external import coding
from tasks.external.reading import Names
from tasks.release import making, models, sums, utility
from tasks.release.serving import lists

USERS = (250, 500, 1000, 2000, 4000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA, PARTS = 1e-5, 5


def measured(rows: sums.Rows, epsilon: float, seed: int) -> tuple[float, float]:
    """NDCG@10 of the release, and of noisy counts that have the whole budget."""
    used, held = utility.split(rows, np.random.default_rng([seed, 1]))
    some = np.diff(held.indptr) > 0

    def ndcg(model: models.Model) -> float:
        return float(utility.gain(lists(model, used, utility.TOP), held)[some].mean())

    budget = making.Budget(epsilon, DELTA, np.random.default_rng([seed, 2]))
    release = making.make(used, budget, users=rows.shape[0])
    alone = making.Budget(epsilon, DELTA, np.random.default_rng([seed, 3]))
    return ndcg(models.fit(release, "svd")), ndcg(models.fit(making.counts_alone(used, alone), "popularity"))


def main() -> None:
    if len(sys.argv) > 1:
        data = coding.coded(Path(sys.argv[1]), Names(), None)
        rows = sums.rows_of(data.users, data.items, len(data.user_ids), len(data.item_ids))
    else:
        users, items = np.random.default_rng(0).integers([[300], [200]], size=(2, 6000)).astype(np.int32)
        rows = sums.rows_of(users, items, 300, 200)
    for n in [int(number) for number in sys.argv[2:]] or [*(n for n in USERS if n < rows.shape[0]), rows.shape[0]]:
        cells = []
        for epsilon in EPSILONS:
            runs = []
            for seed in range(PARTS):
                part = np.sort(np.random.default_rng([seed, 0]).permutation(rows.shape[0])[:n])
                runs.append(measured(rows[part], epsilon, seed))
            release, popular = np.array(runs).T
            error = release.std(ddof=1) / PARTS**0.5
            cells.append(f"{release.mean():.3f} ± {error:.3f} ({popular.mean():.3f})")
        print(f"| {n:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

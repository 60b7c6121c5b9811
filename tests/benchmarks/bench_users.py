"""How many users a release needs: utility of `dprec release` on random parts of a table, by the number of its users.

python -m tests.benchmarks.bench_users RATINGS [USERS ...] prints docs/release-users.csv: NDCG@10 on a tenth of
each row, δ = 10⁻⁵, research noise; mean and standard error over parts with a split and a draw of noise each, and the
mean of noisy popularity with the whole budget. Without RATINGS the rows are random.
"""

import sys
from pathlib import Path

import numpy as np

from tests.benchmarks.bench_rule import measured, random_table, table

USERS = (250, 500, 1000, 2000, 4000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA, PARTS = 1e-5, 5


def main() -> None:
    rows = table(Path(sys.argv[1])) if len(sys.argv) > 1 else random_table()
    print("users,epsilon,ndcg,error,popularity")
    for n in [int(number) for number in sys.argv[2:]] or [*(n for n in USERS if n < rows.shape[0]), rows.shape[0]]:
        for epsilon in EPSILONS:
            runs = []
            for seed in range(PARTS):
                part = np.sort(np.random.default_rng([seed, 0]).permutation(rows.shape[0])[:n])
                runs.append([measured(rows[part], epsilon, DELTA, seed, kind) for kind in ("svd", "popularity")])
            release, popular = np.array(runs).T
            error = release.std(ddof=1) / PARTS**0.5
            print(f"{n},{epsilon},{release.mean():.4f},{error:.4f},{popular.mean():.4f}", flush=True)


if __name__ == "__main__":
    main()

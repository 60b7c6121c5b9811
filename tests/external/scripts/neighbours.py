"""Item-based neighbours of the library implicit: `neighbours.py TRAIN HISTORIES OUT`; all users are folded in."""

import csv
import sys

import numpy as np
from implicit.nearest_neighbours import CosineRecommender
from scipy.sparse import csr_matrix

K = 10
Rows = list[dict[str, str]]


def read(path: str) -> Rows:
    """The rows of a table."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def main(train: str, histories: str, out: str) -> None:
    """Train, and write lists for everyone in `histories`."""
    trained, served = read(train), read(histories)
    items = sorted({row["item"] for row in trained + served})
    place = {item: i for i, item in enumerate(items)}

    def matrix(rows: Rows) -> tuple[list[str], csr_matrix]:
        users = sorted({row["user"] for row in rows})
        number = {user: i for i, user in enumerate(users)}
        places = [number[row["user"]] for row in rows], [place[row["item"]] for row in rows]
        return users, csr_matrix((np.ones(len(rows)), places), (len(users), len(items)))

    model = CosineRecommender(K=20, num_threads=1)
    model.fit(matrix(trained)[1], show_progress=False)
    users, known = matrix(served)
    ids, scores = model.recommend(np.arange(len(users)), known, N=K, recalculate_user=True)
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item", "score"])
        for owner, column in zip(*np.nonzero((ids >= 0) & (scores > 0)), strict=True):
            writer.writerow([users[owner], items[ids[owner, column]], scores[owner, column]])


if __name__ == "__main__":
    main(*sys.argv[1:])

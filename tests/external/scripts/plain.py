"""A recommender of the standard library alone: `plain.py KIND TRAIN HISTORIES OUT`, KIND own or popular."""

import csv
import sys
from collections import Counter
from pathlib import Path

K = 10


def read(path: str) -> dict[str, list[str]]:
    """User -> items, in the order of the file."""
    histories: dict[str, list[str]] = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            histories.setdefault(row["user"], []).append(row["item"])
    return histories


def main(kind: str, train: str, histories: str, out: str) -> None:
    """Recommend what a user was trained on (own), or the most popular items that are new (popular)."""
    trained = read(train)
    popular = [item for item, _ in Counter(item for items in trained.values() for item in items).most_common()]
    with Path(out).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item", "rank"])
        for user, items in read(histories).items():
            new = [item for item in popular if item not in items]
            chosen = ([*trained.get(user, []), *popular] if kind == "own" else new)[:K]
            for rank, item in enumerate(dict.fromkeys(chosen), start=1):
                writer.writerow([user, item, rank])


if __name__ == "__main__":
    main(*sys.argv[1:])

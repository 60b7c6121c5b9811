"""Which word vectors DP-VAE's priors are made from, and how many words and users have a stand-in instead."""

from __future__ import annotations

from typing import Any

from tasks.reporting.core.layout import Cell, Heading, Row, Table, count, join_words
from tasks.reporting.core.results import Results

FIELDS = ("vectors", "dimension", "vocabulary", "n_users", "attributes", "words", "origins")
"""What is read of data/words/<name>/words.json."""
CALLED = {
    "vocabulary": "in the vocabulary",
    "sub-words": "put together from parts",
    "hashed": "hashed: random numbers fixed by the word",
}

LEAST = 10
"""Groups of fewer users are no aggregate: pages do not show how many they are."""


def sentences(results: Results) -> list[str]:
    """One sentence per set of embeddings."""
    return [_sentence(vectors) for vectors in results.words]


def table(results: Results) -> Table | None:
    """How many words have a vector of their own and how many users a stand-in touches; None without embeddings."""
    rows = []
    for vectors in results.words:
        for how, counted in vectors["origins"].items():
            names = [word for word, record in vectors["words"].items() if record["how"] == how]
            lines = (", ".join(names),) if how != "vocabulary" and names else ()
            rows.append(
                Row(
                    f"{vectors['name']}: {CALLED.get(how, how)}",
                    [
                        Cell(str(counted["words"])),
                        Cell(f"{_aggregate(counted['users'])} of {vectors['n_users']:,}"),
                        Cell("", lines, ""),
                    ],
                )
            )
    if not rows:
        return None
    headings = [("Vectors", ""), ("words", "number"), ("users with such a word", "number"), ("which", "")]
    return Table("Words of users' metadata", [Heading(*heading) for heading in headings], rows)


def _aggregate(users: int) -> str:
    """A number of users; of few, only that they are few."""
    return f"fewer than {LEAST}" if 0 < users < LEAST else f"{users:,}"


def _sentence(vectors: dict[str, Any]) -> str:
    size = f"{vectors['dimension']} numbers per word"
    about = f"{join_words(list(vectors['attributes']))} in {count(len(vectors['words']), 'word')}"
    if vectors["vectors"] == "hashed":
        return (
            f"{vectors['name']}: {about}; no GloVe, but hashed vectors ({size}), which carry no meaning of the words."
        )
    source = vectors["vocabulary"]
    known = f"{source['name']} ({source['words']:,} words), reduced to {size}"
    kept = f"{100 * source['variance_kept']:.0f} % of their variance"
    absent = sum(counted["words"] for how, counted in vectors["origins"].items() if how != "vocabulary")
    fallback = "every word has its own vector" if not absent else f"{count(absent, 'word')} not in it"
    return f"{vectors['name']}: {about}; {known}, which keep {kept}; {fallback}."

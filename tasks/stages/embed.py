"""Stage `embed`: the user features of a processed data set as word vectors, the metadata of DP-VAE's priors.

Writes data/words/<name>/: features.parquet (user, then `<attribute>.<i>`), schema.json (of the processed data) and
words.json: which words stand for whom, and where the vector of each is from. The features are the users' own, only
written in another way: nothing here protects them.

GloVe's file lies in data/placed/ or in the mirror, where DVC does not look: after another one was put there,
`dvc repro -f data/dvc.yaml:embed@NAME` takes it. words.json says which one was taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tasks.config.params import Words, entry, load
from tasks.core import contracts
from tasks.core.errors import ByHandError, DataError
from tasks.datasets import glove, word_vectors
from tasks.datasets.word_vectors import Vocabulary, WordVector
from tasks.datasets.words import Attribute, attribute
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import PROCESSED, WORDS, atomic_write, file_digest, require_passed, write_json
from tasks.stages.download import places
from tasks.stages.perturb_features import write


def main(name: str) -> None:
    """Embed data set `name`."""
    options = entry("words", name, load().words)
    require_passed("processed", options.data)
    source = PROCESSED / options.data
    schema = contracts.read_schema(source / "schema.json")
    if not schema.features:
        raise DataError(
            f"{source}/schema.json: users have no features, so there is nothing to embed; "
            f"take words.{name} out of params.yaml"
        )
    users = contracts.read(source / "users.parquet", contracts.users_schema(schema.features))
    attributes = [attribute(feature, users) for feature in schema.features]
    vocabulary, origin = read_vocabulary(name, options) if options.vectors == "glove" else (None, None)
    words = dict.fromkeys(word for attribute in attributes for of_value in attribute.words for word in of_value)
    vectors = word_vectors.look_up(words, vocabulary, options.dimension, options.seed)
    matrix = np.hstack(
        [word_vectors.value_vectors(attribute.words, vectors)[attribute.codes] for attribute in attributes]
    )
    columns = [f"{attribute.name}.{number}" for attribute in attributes for number in range(options.dimension)]
    with atomic_write(WORDS / name) as target:
        target.mkdir()
        write(matrix, columns, target / "features.parquet")
        write_json(target / "schema.json", schema.model_dump(mode="json"))
        about = options.model_dump(mode="json") | {"columns": columns, "vocabulary": origin}
        write_json(target / "words.json", about | report(attributes, vectors))


def read_vocabulary(name: str, options: Words) -> tuple[Vocabulary, dict[str, object]]:
    """GloVe's words in `options.dimension` numbers, and what is said about the file that they are from."""
    try:
        with glove.local(places()) as path:
            words, vectors = glove.read(path)
            vocabulary = word_vectors.vocabulary(words, vectors, options.dimension)
            about = {"sha256": file_digest(path), "words": len(words), "variance_kept": vocabulary.kept}
    except DataError as error:
        raise ByHandError(f"{error}\nor set words.{name}.vectors to hashed in params.yaml") from error
    return vocabulary, glove.ORIGIN | about


def report(attributes: Sequence[Attribute], vectors: Mapping[str, WordVector]) -> dict[str, object]:
    """The words of every attribute's values, where the vector of each word is from, and how many users that touches.

    `users` counts those with a word of that origin in some attribute.
    """
    n_users = len(attributes[0].codes)
    affected = {word: np.any([attribute.users_with(word) for attribute in attributes], axis=0) for word in vectors}
    origins = {}
    for how in ("vocabulary", "sub-words", "hashed"):
        members = [affected[word] for word, vector in vectors.items() if vector.how == how]
        origins[how] = {"words": len(members), "users": int(np.any(members, axis=0).sum()) if members else 0}
    return {
        "n_users": n_users,
        "attributes": {
            attribute.name: dict(zip(attribute.values, map(list, attribute.words), strict=True))
            for attribute in attributes
        },
        "words": {
            word: {"how": vector.how, "parts": list(vector.parts), "users": int(affected[word].sum())}
            for word, vector in vectors.items()
        },
        "origins": origins,
    }


if __name__ == "__main__":
    run_stage(main)

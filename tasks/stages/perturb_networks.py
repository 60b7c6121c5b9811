"""A network of users, or two, as DP-CroSUE's users share it: attributes, friendships and words perturbed.

Writes <setting>/seed-<s>/<network>/ (of a lone network <setting>/seed-<s>/), for each of those that the network has:
features.parquet (user, then encoded columns), social.parquet (each friendship once, the smaller id first),
posts.parquet and vocabulary.parquet (words that a post may hold), and schema.json: `tables` names all but the features.
Next to two networks lies the schema.json of the pair. Nothing else of the processed data is there: labels, anchors,
vectors of whole texts and published ids are not perturbed, so they are not released. Where accounting is `released`,
what the authors' code leaves as it is stays so, and follows are perturbed with their direction, which friendships lose.

Where accounting is rigorous, nothing that is made of the data without noise has a part in a release: numbers that
only the data's own minimum and maximum scale, and categories that only the data list, are left out, words that GloVe's
file has not are dropped, and of each user the words of posts in random order are released up to so many. (Processed
posts lie in the order of their texts, which would show in how long they are.)

GloVe's file lies in data/placed/ or in the mirror, where DVC does not look: after another one was put there,
`dvc repro -f data/dvc.yaml:perturb@NAME` takes it. words.json says which one was taken.

Source: DP-CroSUE (Ren et al., CIKM 2022), section 4.1; docs/methods.md §6 and §9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config.fields import AnyNetworks, Budgets, PublishedNetworks, ReleasedNetworks, RigorousNetworks
from tasks.core import contracts
from tasks.core.contracts import Feature, Schema
from tasks.core.errors import ByHandError, DataError
from tasks.datasets import glove
from tasks.datasets.encoding import encode
from tasks.models.user_networks.base import undirected_pairs
from tasks.models.user_networks.friendship import cooccurrences
from tasks.models.user_networks.skipgram import skipgram_vectors
from tasks.pipeline.common import file_digest, write_json
from tasks.privacy.accounting.gaps import prepared_entry, secure_entry
from tasks.privacy.accounting.ledger import LedgerEntry, left_out
from tasks.privacy.mechanisms import as_released, edges, multidimensional, posts
from tasks.privacy.mechanisms.posts import Vocabulary
from tasks.privacy.noise import generator
from tasks.privacy.remarks import Explanation, KnownGap, because, gap
from tasks.privacy.terms import Reason
from tasks.stages import perturb_features
from tasks.stages.download import places

UNLISTED: dict[str, Reason] = {"numeric": "unscaled-numbers", "categorical": "unlisted-categories"}
"""Kind of a feature that is fitted -> why a rigorous release leaves it out."""


@dataclass(frozen=True)
class Network:
    """What of a network is perturbed; each part is None where there is none, or it is left out.

    features: those that are released, with their `matrix`: (n_users, n_columns).
    links: (n_links, 2) int32, each friendship once; each follow where accounting is `released`.
    posts: `user` and `tokens`, ids of `words`; none without a word.
    unreleased: of a part that is left out, why.
    """

    name: str
    schema: Schema
    features: tuple[Feature, ...]
    matrix: NDArray[np.float32] | None
    links: NDArray[np.int32] | None
    posts: pl.DataFrame | None
    words: Vocabulary | None
    unreleased: dict[str, tuple[Explanation, ...]]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that is perturbed: hexadecimal digits."""
        texts = () if self.posts is None else (self.posts["user"].to_numpy(), *posts.to_ragged(self.posts))
        return perturb_features.content_digest(self.matrix, self.links, *texts)


def perturb(name: str, options: AnyNetworks, source: Path, target: Path) -> list[dict[str, object]]:
    """Write all releases of the network or pair in `source` below `place`.

    Returns:
        The ledger: setting, seed, network (empty for a lone one) and the fields of an entry; of texts three entries,
        for three ways to be neighbours.
    """
    schema = contracts.read_processed(source).schema
    public = None
    target.mkdir(parents=True)
    if isinstance(options, RigorousNetworks) and options.text_epsilon is not None:
        public, origin = public_words(options)
        write_json(target / "words.json", origin)
    networks = [read(source / network, network, options, public) for network in schema.networks or ("",)]
    records = []
    for setting, budgets in options.settings().items():
        for seed in options.seeds:
            folder = target / setting / f"seed-{seed}"
            for network in networks:
                (folder / network.name).mkdir(parents=True)
                entries = release(network, options, budgets, (name, setting), seed, folder / network.name)
                key = {"setting": setting, "seed": seed, "network": network.name}
                records += [key | entry.model_dump(mode="json") for entry in entries]
            if schema.networks:
                pair = schema.model_copy(update={"tables": ()})
                write_json(folder / "schema.json", pair.model_dump(mode="json"))
    return records


def read(folder: Path, name: str, options: AnyNetworks, public: Vocabulary | None) -> Network:
    """A processed network as it is perturbed: friends without direction, features and words that may be released."""
    tables = contracts.read_processed(folder)
    schema, rigorous = tables.schema, isinstance(options, RigorousNetworks)
    unreleased: dict[str, tuple[Explanation, ...]] = {}
    features = tuple(feature for feature in schema.features if not rigorous or feature.bounds == "public")
    fitted = [feature for feature in schema.features if feature not in features]
    reasons = tuple(
        because(why, columns=", ".join(names))
        for kind, why in UNLISTED.items()
        if (names := [feature.name for feature in fitted if feature.kind == kind])
    )
    if reasons:
        unreleased["feature"] = reasons
    matrix = None
    if features:
        users = contracts.read(folder / "users.parquet", contracts.users_schema(schema.features))
        matrix = encode(users, features)
    links = None
    if "social" in schema.tables:
        pairs = follows if isinstance(options, ReleasedNetworks) else friendships
        links = pairs(tables.scan("social"))
    texts = vocabulary = None
    if "vectors" in schema.tables and "posts" not in schema.tables:
        unreleased["text"] = (because("whole-texts"),)
    elif "posts" in schema.tables and options.text_epsilon is None:
        unreleased["text"] = (because("posts-without-budget"),)
    elif "posts" in schema.tables:
        texts = contracts.read(folder / "posts.parquet", contracts.POSTS)
        own_words = contracts.read(folder / "vocabulary.parquet", contracts.VOCABULARY).sort("id")["word"]
        if not isinstance(options, RigorousNetworks):
            vocabulary = fitted_words(texts, own_words.to_list(), options)
        else:
            assert public is not None, "read where texts have a budget"
            texts, vocabulary = posts.known_words(texts, own_words, public), public
            if texts.is_empty():
                raise DataError(
                    f"{folder}/posts.parquet: no word is among the {len(public.names)} public ones; set text_epsilon "
                    "to null to leave texts out"
                )
    if matrix is None and links is None and texts is None:
        raise DataError(f"{folder}/schema.json: the network has no features, friends or posts that can be perturbed")
    return Network(name, schema, features, matrix, links, texts, vocabulary, unreleased)


def friendships(social: pl.LazyFrame) -> NDArray[np.int32]:
    """Each pair of different users of which one follows the other, once: (n_links, 2), in order."""
    ends = pl.col("source"), pl.col("target")
    pairs = social.select(source=pl.min_horizontal(*ends), target=pl.max_horizontal(*ends))
    return pairs.filter(ends[0] != ends[1]).unique().sort(*ends).collect().to_numpy()


def follows(social: pl.LazyFrame) -> NDArray[np.int32]:
    """Each follow of a user by another once: (n_follows, 2), in order."""
    pairs = social.select("source", "target").filter(pl.col("source") != pl.col("target"))
    return pairs.unique().sort("source", "target").collect().to_numpy()


def fitted_words(texts: pl.DataFrame, names: list[str], options: PublishedNetworks | ReleasedNetworks) -> Vocabulary:
    """The network's own vocabulary, with vectors of what is written near what."""
    how = options.word_vectors
    lengths, tokens = posts.to_ragged(texts)
    counts = cooccurrences(tokens, np.repeat(np.arange(len(lengths)), lengths), len(names), how.window)
    vectors = skipgram_vectors(counts, how.dimension, how.negatives, np.random.default_rng(how.seed))
    return Vocabulary.from_vectors(names, vectors)


def public_words(options: RigorousNetworks) -> tuple[Vocabulary, dict[str, object]]:
    """GloVe's first words, and what is said about the file that they are from.

    Raises:
        ByHandError: the file is neither placed nor in the mirror.
        DataError: the file is not what it should be.
    """
    try:
        with glove.local(places()) as path:
            names, vectors = glove.read(path)
            sha256 = file_digest(path)
    except DataError as error:
        raise ByHandError(f"{error}\nor set text_epsilon to null in params.yaml") from error
    names, vectors = names[: options.public_words], vectors[: options.public_words]
    vocabulary = Vocabulary.from_vectors(names, vectors)
    about = {"sha256": sha256, "words": len(names), "diameter": vocabulary.diameter}
    return vocabulary, glove.ORIGIN | about


def release(
    network: Network, options: AnyNetworks, budgets: Budgets, where: tuple[str, str], seed: int, folder: Path
) -> Iterator[LedgerEntry]:
    """Write one release of a network into `folder`; what each kind of its data spent.

    Args:
        where: the entry of params.yaml and its setting; with the network, what it holds, the kind of data and the seed
            they tell its noise from all other.
    """
    many, n_words = len(options.settings()) * len(options.seeds), 0
    entries, tables = list[LedgerEntry](), dict[str, pl.DataFrame]()

    def rng(kind: str, epsilon: float) -> np.random.Generator:
        return generator(seed, epsilon, *where, network.name, network.digest, kind, secure=options.noise == "secure")

    if network.matrix is not None:
        epsilon, features = budgets.features_epsilon, network.features
        noise = rng("feature", epsilon)
        if isinstance(options, ReleasedNetworks):
            perturbed = as_released.attributes(network.matrix, features, epsilon, noise)
            entries.append(as_released.attributes_entry(features, epsilon, many))
        else:
            perturbed = multidimensional.perturb(network.matrix, features, epsilon, noise)
            accounted = multidimensional.entries(features, epsilon, many)
            entries += [entry.model_copy(update={"accounting": options.accounting}) for entry in accounted]
        columns = [column for feature in features for column in feature.columns]
        perturb_features.write(perturbed, columns, folder / "features.parquet")
    if network.links is not None:
        epsilon = budgets.edges_epsilon
        graph, entry = release_links(
            network.links, network.schema.n_users, options, epsilon, many, rng("edge", epsilon)
        )
        source, target = graph.astype(np.int32).T
        tables["social"] = pl.DataFrame({"source": source, "target": target}).with_columns(relation=pl.lit("friend"))
        entries.append(entry.model_copy(update={"gaps": (gap("direction-dropped"), *entry.gaps)}))
    if network.posts is not None:
        assert network.words is not None, "read with the posts"
        assert budgets.text_epsilon is not None, "or the posts would be left out"
        n_words, epsilon = len(network.words.names), budgets.text_epsilon
        texts = network.posts, network.words, epsilon
        if isinstance(options, ReleasedNetworks):
            shares = options.sensitive_share, options.replaced_share
            entries += as_released.text_entries(*texts, *shares, many)
            tables["posts"] = as_released.texts(*texts, *shares, rng("text", epsilon))
        else:
            per_user = options.words_per_user if isinstance(options, RigorousNetworks) else None
            tables["posts"], spent = posts.perturb(*texts, rng("text", epsilon), many, per_user)
            entries += spent
        ids = pl.int_range(n_words, dtype=pl.Int32, eager=True)
        tables["vocabulary"] = pl.DataFrame({"id": ids, "word": network.words.names})
    schema = network.schema.model_copy(
        update={
            "features": network.features, "tables": tuple(tables), "labels": (), "n_words": n_words, "vector_size": 0
        }
    )  # fmt: skip
    for name, table in tables.items():
        contracts.write(table, folder / f"{name}.parquet", contracts.table_schema(name, schema))
    write_json(folder / "schema.json", schema.model_dump(mode="json"))
    return with_remarks(entries, network, options)


def release_links(
    links: NDArray[np.int32], n_users: int, options: AnyNetworks, epsilon: float, many: int, rng: np.random.Generator
) -> tuple[NDArray[np.integer], LedgerEntry]:
    """Friendships, (n_links, 2), and what they spent; many: releases of the same data that lie side by side."""
    if isinstance(options, ReleasedNetworks):
        count = options.count_share * epsilon
        directed = as_released.follows(links, n_users, epsilon, count, rng)
        return undirected_pairs(directed), as_released.follows_entry(epsilon, count, many)
    cells, count = edges.budgets(epsilon, options.count_share, options.accounting)
    graph = edges.top_m_filter(links, n_users, cells, count, rng, options.accounting)
    return graph, edges.ledger(cells, count, options.accounting, many)


def with_remarks(entries: list[LedgerEntry], network: Network, options: AnyNetworks) -> Iterator[LedgerEntry]:
    """The entries with what only the stage knows: what was left out, and that a pair shares users."""
    common = (gap("two-networks"),) if network.name else ()
    words: tuple[KnownGap, ...] = ()
    if isinstance(options, RigorousNetworks) and network.posts is not None:
        words = (gap("public-words", words=options.public_words, per_user=options.words_per_user),)
    for entry in map(secure_entry, entries) if options.noise == "secure" else entries:
        gaps = (*(words if entry.protects == "text" else ()), *common, *entry.gaps)
        reasons = (*entry.reasons, *network.unreleased.get(entry.protects, ()))
        yield prepared_entry(entry.model_copy(update={"gaps": gaps, "reasons": reasons}), network.schema.conditions)
    if "text" in network.unreleased:
        yield prepared_entry(left_out("text", "texts", options.accounting, network.unreleased["text"]))
    if "feature" in network.unreleased and network.matrix is None:
        yield prepared_entry(left_out("feature", "features", options.accounting, network.unreleased["feature"]))

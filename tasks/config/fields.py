"""Kinds of values that params.yaml and suites/<suite>/params.yaml have, and the base of the types that hold them.

The types of perturbed data are here as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from tasks.evaluation.run_numbers import APART

HOLDS_PARAMETERS = True
FEATURES = {"multidimensional": "tasks.stages.perturb_features:perturb"}
"""Mechanism of features of a table of users -> what runs it."""
NETWORKS = {"dpcrosue": "tasks.stages.perturb_networks:perturb"}
"""Mechanism of networks of users -> what runs it."""
BASE = "base"
"""The setting of an experiment that no sweep changed."""
SHOWN = 80
"""Characters of a wrong value that a message shows."""
OF_DATA = ("features_epsilon", "edges_epsilon", "text_epsilon", "sensitive_share")
"""Keys of a setting that choose its data; all others are the model's own configuration."""


def model_config(config: Mapping[str, object]) -> dict[str, object]:
    """Of a setting, what the model is configured by."""
    return {key: value for key, value in config.items() if key not in OF_DATA}


def require_distinct(values: list[Any]) -> list[Any]:
    """The same values (ValueError: one is repeated)."""
    repeated = {value for value in values if values.count(value) > 1}
    if repeated:
        raise ValueError(f"{sorted(repeated)[0]} is repeated")
    return values


def choice(kind: str, names: Callable[[], list[str]]) -> AfterValidator:
    """Lets only registered names pass; `kind` says of what."""

    def check(name: str) -> str:
        if name not in names():
            raise ValueError(f"unknown {kind} {name[:SHOWN]!r}; known: {', '.join(sorted(names()))}")
        return name

    return AfterValidator(check)


Seeds = Annotated[list[Annotated[int, Field(ge=0, lt=APART)]], Field(min_length=1), AfterValidator(require_distinct)]
Cutoffs = Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(require_distinct)]
Share = Annotated[float, Field(gt=0, lt=1)]
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NAME = r"^[a-z0-9][a-z0-9-]*$"
Name = Annotated[str, Field(pattern=NAME)]
DistinctNames = Annotated[list[Name], AfterValidator(require_distinct)]


class Strict(BaseModel):
    """No unknown keys, and no guessing: a quoted number, or `true` for 1, is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tuning(Strict):
    """What `dprec tune` tries, on validation data alone."""

    seed: Annotated[int, Field(ge=0)]
    """Seed of every trial; no experiment may use it for a result."""
    of: Name | None = None
    """Suite whose trials chose the configurations; null: this one's."""
    grid: dict[Name, dict[str, Annotated[list[Any], Field(min_length=1)]]] = Field(default_factory=dict)
    """System -> configuration key -> values; every combination is one trial."""
    untried: dict[Name, str] = Field(default_factory=dict)
    """System that learns and is in no grid, or experiment that keeps what another of its system had -> why."""


class PerturbedFeatures(Strict):
    """A processed data set whose user features went through a local mechanism, once per budget and seed."""

    data: str
    mechanism: Annotated[str, choice("mechanism", lambda: list(FEATURES))]
    epsilon: Annotated[list[Epsilon], Field(min_length=1), AfterValidator(require_distinct)]
    seeds: Seeds
    noise: Literal["secure"] | None = None
    """Secure: from the operating system, and seeds only number the releases; null: from the seeds, for research."""


class Budgets(NamedTuple):
    """What each kind of data of a network is perturbed with."""

    features_epsilon: float
    edges_epsilon: float
    text_epsilon: float | None


class _PerturbedNetworks(Strict):
    """A processed network of users, or two, of which all that is read was perturbed, once per setting and seed.

    The settings are `base` and, for each budget of the sweep, the base with that one in its kind's place.
    """

    data: str
    mechanism: Annotated[str, choice("mechanism", lambda: list(NETWORKS))]
    features_epsilon: Epsilon
    """epsilon_a: of all attributes of a user together."""
    edges_epsilon: Epsilon
    """epsilon_g: of the friendships."""
    count_share: Share
    """What the number of friendships costs, in shares of `edges_epsilon`: added to it where accounting is published or
    released, out of it where it is rigorous."""
    text_epsilon: Epsilon | None
    """epsilon_t: per unit of distance of word vectors where accounting is published or released, of a user's whole text
    where it is rigorous; null: texts are left out (there are none, or no public vectors of their language)."""
    sweep: dict[
        Literal["features_epsilon", "edges_epsilon", "text_epsilon"],
        Annotated[list[Epsilon], Field(min_length=1), AfterValidator(require_distinct)],
    ]
    """Budgets in the place of a base one, one at a time."""
    seeds: Seeds
    noise: Literal["secure"] | None = None
    """Secure: from the operating system, and seeds only number the releases; null: from the seeds, for research."""

    @model_validator(mode="after")
    def _sweep_is_elsewhere(self) -> Self:
        for key, values in self.sweep.items():
            base = getattr(self, key)
            if base is None:
                raise ValueError(f"sweep.{key}: must be left out where {key} is null")
            if base in values:
                raise ValueError(f"sweep.{key}: {base} is what the base has")
        return self

    def settings(self) -> dict[str, Budgets]:
        """Setting name -> budgets; the first is `base`, others are named as experiments name theirs."""
        base = Budgets(self.features_epsilon, self.edges_epsilon, self.text_epsilon)
        points = {f"{key}={value}": base._replace(**{key: value}) for key in self.sweep for value in self.sweep[key]}
        return {BASE: base} | points


class WordVectors(Strict):
    """How vectors of the words of posts are trained on the posts themselves (`Word2VecConfig`)."""

    dimension: Annotated[int, Field(ge=1)]
    window: Annotated[int, Field(ge=1)]
    """Words of one post at most so far apart are near each other."""
    negatives: Annotated[float, Field(ge=1)]


class FittedVectors(WordVectors):
    """Word2Vec on a network's own posts (`tasks.models.user_networks.skipgram`)."""

    seed: Annotated[int, Field(ge=0)]
    """Of what the factorisation starts from."""


class PublishedNetworks(_PerturbedNetworks):
    """With the paper's noise: its top-m filter, and words replaced by the vectors that their own texts make."""

    accounting: Literal["published"]
    word_vectors: FittedVectors


class RigorousNetworks(_PerturbedNetworks):
    """With noise whose accounted total is the stated budget: independent cells, and GloVe's words."""

    accounting: Literal["rigorous"]
    public_words: Annotated[int, Field(ge=2)]
    """The vocabulary: the first words of GloVe's file, the most frequent, at most so many."""
    words_per_user: Annotated[int, Field(ge=1)]
    """Words of a user that are released at most; the text's budget is shared by so many."""


class ReleasedNetworks(_PerturbedNetworks):
    """As the authors' code perturbs them (`tasks.privacy.mechanisms.as_released`); what it leaves raw stays raw."""

    accounting: Literal["released"]
    word_vectors: FittedVectors
    sensitive_share: Share
    """Of the vocabulary: the least frequent words, which are always replaced."""
    replaced_share: Share
    """Of the other words: those that are replaced."""
    noise: None = None
    """Not secure: there is nothing that secure noise would keep."""


AnyNetworks = PublishedNetworks | ReleasedNetworks | RigorousNetworks
PerturbedNetworks = Annotated[AnyNetworks, Field(discriminator="accounting")]


def _release_kind(entry: object) -> str | None:
    """What an entry's mechanism releases; None where there is no such mechanism."""
    name = entry.get("mechanism") if isinstance(entry, Mapping) else getattr(entry, "mechanism", None)
    return "features" if name in [*FEATURES] else "networks" if name in [*NETWORKS] else None


Perturbed = Annotated[
    Annotated[PerturbedFeatures, Tag("features")] | Annotated[PerturbedNetworks, Tag("networks")],
    Discriminator(
        _release_kind,
        custom_error_type="unknown_mechanism",
        custom_error_message="unknown",
    ),
]

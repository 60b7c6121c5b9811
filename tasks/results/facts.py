"""What is neither a table nor a number of a run: of a suite, its systems and its data. `suite.json` of the results."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tasks.evaluation.run_numbers import split_of
from tasks.privacy.terms import Condition, Observer, Protected, Unit

BASE = "base"
"""The setting that an experiment has without its sweep."""
NOISY = ("gaussian-popularity", "dp-popularity", "dp-rating-means")
"""Models of noisy popularity: of items in lists, of ratings by means; gains are over the first that a suite has."""
BASELINES = ("popularity", "rating-means", *NOISY)
"""Models that a system has to be better than to be worth its training."""
Kind = Literal["real", "part", "synthetic"]
"""What data numbers are of."""
KINDS: tuple[Kind, ...] = ("real", "part", "synthetic")
"""Best first."""
BUDGET_KEYS = ("epsilon", "epsilon_max")
"""Keys of configurations that say a claimed ε; of which level, a system's ledger says. Settings that override one of
them are points of one curve."""
Texts = Literal["posts", "vectors", "none"]


WAYS = (
    "adversarial", "cycle", "attributes", "attribute-start", "anchors-1%", "anchors-5%", "anchors-10%", "anchors-80%",
)  # fmt: skip
"""How accounts of two networks are matched; the last four are given a share of the true anchors."""


class Facts(BaseModel):
    """Facts as they are written: no other keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class System(Facts):
    """One experiment: a model on a data set, with its seeds and sweep points."""

    experiment: str
    model: str
    """Its system: what published tables and claims call it. Several experiments may have one."""
    label: str
    """Name in tables and figures, unique within the suite."""
    dataset: str
    """What it was trained and tested on."""
    seeds: tuple[int, ...]
    """Of its runs at setting `base`: seeds, on further splits as `tasks.evaluation.run_numbers` counts them."""
    parameters: dict[str, Any]
    """Its entry in the suite's params.yaml, with those of the embeddings that it takes over."""
    cut_off: dict[str, tuple[int, ...]]
    """Setting -> seeds whose training the cap on epochs ended, not validation."""

    @property
    def config(self) -> dict[str, Any]:
        """Its model's configuration at setting `base`."""
        return dict(self.parameters["config"])

    def settings(self) -> dict[str, dict[str, object]]:
        """Setting -> the keys that it overrides, with their values; the first is `base`, which overrides none."""
        points = {",".join(f"{key}={value}" for key, value in point.items()): dict(point) for point in self.sweep}
        return {BASE: {}} | points

    @property
    def sweep(self) -> list[dict[str, object]]:
        """Keys and values of every sweep point."""
        return list(self.parameters["sweep"])


class Network(Facts):
    """One of a pair of networks."""

    name: str
    users: int
    posts: int
    """0 where none are published."""
    friendships: int
    """0 where none are published; such a network is not embedded."""
    labelled: bool
    """Whether users' interests are known."""
    sensitive: tuple[str, ...]
    """Attributes that attacks try to infer."""
    texts: Texts
    """What is published of users' texts: the texts themselves, or one vector for each user, or nothing."""
    attributed: bool
    """Whether users have attributes at all."""

    @property
    def title(self) -> str:
        """Its name as a title."""
        return self.name.capitalize()


class Aligned(Facts):
    """A pair of networks whose accounts were matched without a model of a suite: an entry of `aligned`."""

    name: str
    embeddings: str
    """The model whose vectors it sees; empty for none."""
    attributes: Literal["", "processed", "perturbed"]
    """The layer of the attributes that it sees; empty for none."""
    matches_columns: bool
    """Whether it knows which attribute of one network is which of the other."""
    judged: int
    """Anchors on which every way is judged."""


class Source(Facts):
    """Where data are from."""

    dataset: str
    address: str
    licence: str


class Suite(Facts):
    """A suite, its systems and its data. What results do not say is of the parameters, and the report's to fill in."""

    suite: str
    title: str = Field(default="", exclude=True)
    paper: str | None
    """Whose tables, figures and claims the report has; None: of no paper."""
    dataset: str
    publication: str
    """The data set as the published tables name it."""
    counted: str
    """The same of real data that these are a part or a replica of, where these were counted, too; else empty."""
    n_features: int
    n_counted_features: int
    """The same of `counted`."""
    synthetic: bool
    stands_for: str
    """Published data set that these are a replica or a part of; empty for themselves."""
    source: Source
    part: str = Field(default="", exclude=True)
    """What part of the data set this is, in Markdown; empty where it is whole."""
    limits: str = Field(default="", exclude=True)
    """What these data can and cannot show, in Markdown; told as it is."""
    validation: str = Field(default="", exclude=True)
    """The metric that chose epochs, with its cut-off ("Recall@20"); empty for what the suite's paper calls it."""
    preparation: dict[str, Any] = Field(default={}, exclude=True)
    """Options of its data's protocol, its name as `protocol`, and how many `users` are left; empty where none say."""
    attack: dict[str, Any] | None
    """Parameters of the suite's attack; None in a suite without."""
    n_targets: int
    """Users whose attributes attackers had to guess; 0 where nothing was attacked."""
    fingerprints: dict[str, str]
    """Processed data set -> SHA-256 of its files; none of a user's own data."""
    words: tuple[dict[str, Any], ...]
    """Where word vectors of users' metadata come from, with the `name` of each set of them."""
    networks: tuple[Network, ...]
    """The two networks, where the data are a pair."""
    anchors: int
    """People who are known to be in both."""
    aligned: tuple[Aligned, ...]
    """Entries of `aligned` whose data are the suite's; their metrics are among the others, under their own names."""
    systems: tuple[System, ...]
    """In the order of params.yaml, be it on other data than the suite's or not."""

    @property
    def kind(self) -> Kind:
        """What data the numbers are of."""
        return kind_of(self.stands_for, synthetic=self.synthetic)

    @property
    def compared(self) -> tuple[System, ...]:
        """Systems on the suite's own data: all that may be compared."""
        return tuple(system for system in self.systems if system.dataset == self.dataset)

    @property
    def n_splits(self) -> int:
        """On how many splits of the data systems were run at setting `base`."""
        return 1 + max((split_of(seed) for system in self.compared for seed in system.seeds), default=0)


def layer_of(read: str) -> tuple[str, str]:
    """Layer and name of what an entry of params.yaml reads, such as perturbed/ml-100k."""
    layer, name = read.split("/")
    return layer, name


def kind_of(stands_for: str, *, synthetic: bool) -> Kind:
    """What data numbers are of, by what these stand for (`Suite.stands_for`)."""
    return "synthetic" if synthetic else "part" if stands_for else "real"


class Together(Facts):
    """All private releases of a suite that bound one unit. `composed.json` of the results."""

    network: str
    """Whose users they are of, of a pair of networks; else empty."""
    unit: Unit
    observer: Observer
    protects: tuple[Protected, ...]
    """Kinds of data whose guarantees are for the unit itself."""
    releases: int
    left_out: int
    """Private releases that spend on this unit, too, and no bound follows: with a finite ε for a smaller unit alone, or
    with none."""
    largest: float
    """The largest ε of those whose own unit this is."""
    epsilon: float | None
    """Of all together; None where no finite one follows."""
    delta: float
    given: tuple[Condition, ...]

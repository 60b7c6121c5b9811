"""Types of params.yaml about networks of users (DP-CroSUE): each one's embeddings, and the alignment of two."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tasks.stages.fields import Cutoffs, Name, Seeds, Share, Strict, distinct

Layer = Annotated[str, Field(pattern=r"^(processed|perturbed)/[a-z0-9-]+$")]
ROUNDING = 1e-9
"""Of shares that add up to 1."""


class TextVectors(Strict):
    """How a network's words become vectors (`tasks.models.networks.skipgram`)."""

    dimension: Annotated[int, Field(ge=1)]
    window: Annotated[int, Field(ge=1)]
    """Words of one post at most so far apart are near each other."""
    negatives: Annotated[float, Field(ge=1)]


class NetworkEmbeddings(Strict):
    """Embeddings of every network of a pair that has friendships, each learnt alone, once per setting and seed."""

    data: Name
    networks: Layer
    """What is embedded: the true networks, or a release of perturbed ones with all its settings."""
    model: Literal["rgcn", "deepwalk"]
    config: dict[str, Any]
    """The model's own configuration."""
    attributes: bool
    """Whether the model reads the users' attributes."""
    text: TextVectors | None
    """How the model reads what users wrote; null: it does not."""
    seeds: Seeds


class Alignment(Strict):
    """Two networks aligned in several ways, all judged on the same people, whom no way is given."""

    data: Name
    embeddings: Name | None
    """The entry of `embeddings` whose two networks are aligned; null: by attributes alone."""
    attributes: Layer | None
    """Where the users' attributes are from; null: no way reads them."""
    ways: Annotated[list[Literal["adversarial", "attributes", "attribute-start"]], AfterValidator(distinct)]
    """Ways that are given no anchor: a map trained against a discriminator; nearest by the attributes that both
    networks have under one name; a map fitted to mutual nearest neighbours by these."""
    anchor_shares: Annotated[list[Share], AfterValidator(distinct)]
    """Ways that are given anchors, such a share of all of them each."""
    test_share: Share
    """Share of the anchors that judge."""
    split_seed: Annotated[int, Field(ge=0)]
    """Of which anchors judge, and which come first among those that ways are given."""
    anchors: Literal["adversarial", "attributes", "attribute-start", "truth"]
    """Whose pairs are handed on: those that a way finds, or all true ones but those that judge."""
    config: dict[str, Any]
    """Configuration of the alignment (`tasks.models.alignment.aligner.AlignmentConfig`)."""
    k: Annotated[Cutoffs, Field(min_length=1)]
    """Cut-offs of the precision."""
    seeds: Seeds
    """Those of the embeddings, or of perturbed attributes, that are aligned."""

    @property
    def shares(self) -> dict[str, float]:
        """Ways that are given anchors, by name: `anchors-5%` -> 0.05."""
        return {f"anchors-{100 * share:g}%": share for share in self.anchor_shares}

    @property
    def all_ways(self) -> list[str]:
        """Names of all ways."""
        return [*self.ways, *self.shares]

    @model_validator(mode="after")
    def _ways_have_what_they_read(self) -> Self:
        if self.embeddings is None and self.attributes is None:
            raise ValueError("embeddings: must not be null where attributes is, or there is nothing to align by")
        if self.anchors != "truth" and self.anchors not in self.ways:
            raise ValueError(f"anchors: {self.anchors!r} is not among ways; known: {', '.join([*self.ways, 'truth'])}")
        by_map = [way for way in self.ways if way != "attributes"] + list(self.shares)
        if self.embeddings is None and by_map:
            raise ValueError(f"embeddings: must not be null where ways or anchor_shares have {by_map[0]!r}")
        by_attributes = [way for way in self.ways if way != "adversarial"]
        if self.attributes is None and by_attributes:
            raise ValueError(f"attributes: must not be null where ways has {by_attributes[0]!r}")
        if len(self.shares) < len(self.anchor_shares):
            raise ValueError("anchor_shares: two have one name; they must differ in the first six digits")
        if (most := max(self.anchor_shares, default=0)) + self.test_share > 1 + ROUNDING:
            raise ValueError(f"anchor_shares: {most:g} of the anchors are not there beside test_share")
        return self

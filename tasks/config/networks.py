"""What a suite's own file says of networks that are embedded alone and of pairs that are aligned, as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tasks.config.fields import Cutoffs, Name, Seeds, Share, Strict, WordVectors, require_distinct

HOLDS_PARAMETERS = True
Networks = Annotated[str, Field(pattern=r"^(processed|perturbed)/[a-z0-9-]+$")]
Way = Literal["adversarial", "cycle", "attributes", "attribute-start"]
OF_ATTRIBUTES = ("attributes", "attribute-start")
"""Ways that read attributes."""
ROUNDING = 1e-9
"""Of shares that add up to 1."""


class NetworkEmbeddings(Strict):
    """Networks, each embedded alone, once per setting of their release and seed."""

    suite: Name
    """Whose file it stands in; `params.load` fills this in."""
    data: str
    """The processed pair; its networks with friendships are embedded."""
    networks: Networks
    """Where they are read: as they are, or as one release has them."""
    model: Literal["rgcn", "deepwalk", "netmf"]
    config: dict[str, Any] = Field(default_factory=dict)
    """The model's own configuration."""
    reads: Annotated[list[Literal["feature", "edge", "text"]], Field(min_length=1), AfterValidator(require_distinct)]
    """The kinds of data that the model is shown."""
    text: WordVectors | None
    """How words of posts become vectors; null: there are no posts, or the model is not shown them."""
    seeds: Seeds
    """Of a release those that it has."""

    @model_validator(mode="after")
    def _friendships_are_read(self) -> Self:
        if "edge" not in self.reads:
            raise ValueError("reads: without 'edge' there is nothing to learn from")
        if self.text is not None and "text" not in self.reads:
            raise ValueError("text: must be null where 'text' is not read")
        return self


class Alignment(Strict):
    """Two networks aligned, once per setting and seed of their embeddings, in several ways."""

    suite: Name
    """Whose file it stands in; `params.load` fills this in."""
    data: str
    """The processed pair, which has the true anchors."""
    of: Annotated[str, Field(pattern=r"^(processed|perturbed|embeddings)/[a-z0-9-]+$")]
    """What is aligned: `embeddings/<name>`, or as vectors the attributes of `processed/<name>` or `perturbed/<name>`
    that both networks have."""
    ways: Annotated[list[Way], AfterValidator(require_distinct)]
    """Without anchors: by an adversarial start, by that of the authors' code (`cycle`), by the attributes that both
    networks have, by a map fitted to mutual nearest neighbours by attributes."""
    anchor_shares: Annotated[list[Share], AfterValidator(require_distinct)]
    """From anchors: shares of all of them, a way each."""
    test_share: Share
    """Share of the anchors that all ways are judged on and none is given."""
    split_seed: Annotated[int, Field(ge=0)]
    anchors: Literal["adversarial", "cycle", "attributes", "attribute-start", "truth"]
    """Whose pairs are handed on; `truth`: the true anchors that no way is judged on."""
    config: dict[str, Any]
    """Configuration of the alignment (`tasks.models.alignment.aligner.AlignmentConfig`)."""
    k: Annotated[Cutoffs, Field(min_length=1)]
    seeds: Seeds
    """Of embeddings or of a release those that they have."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not self.ways and not self.anchor_shares:
            raise ValueError("ways: none, and no anchor_shares; there is nothing to do")
        if self.anchors != "truth" and self.anchors not in self.ways:
            raise ValueError(f"anchors: {self.anchors!r} is not among the ways")
        if "cycle" in self.ways and "cycle" not in self.config:
            raise ValueError("config: the way 'cycle' needs its configuration, `cycle`")
        if len(self.shares) < len(self.anchor_shares):
            raise ValueError("anchor_shares: two have one name; they must differ in the first six digits")
        if self.anchor_shares and max(self.anchor_shares) > 1 - self.test_share + ROUNDING:
            raise ValueError(f"anchor_shares: {max(self.anchor_shares)} and test_share are more than all anchors")
        return self

    @property
    def embeddings(self) -> str | None:
        """The name of the embeddings; None where attributes are the vectors that are aligned."""
        layer, _, name = self.of.partition("/")
        return name if layer == "embeddings" else None

    @property
    def reads_attributes(self) -> bool:
        """Whether a way does, or all do."""
        return self.embeddings is None or any(method in OF_ATTRIBUTES for method in self.ways)

    @property
    def matches_columns(self) -> bool:
        """Whether a way knows which attribute of one network is which of the other."""
        start = self.config.get("adversarial", {}).get("initial")
        by_start = self.embeddings is None and "adversarial" in self.ways and start == "identity"
        return by_start or any(method in OF_ATTRIBUTES for method in self.ways)

    @property
    def shares(self) -> dict[str, float]:
        """Ways that are given anchors, by name: `anchors-5%` -> 0.05."""
        return {f"anchors-{100 * share:g}%": share for share in self.anchor_shares}

    @property
    def all_ways(self) -> list[str]:
        """Names of all ways."""
        return [*self.ways, *self.shares]


def held_out(features: str, aligned: Mapping[str, Alignment]) -> tuple[float, int] | None:
    """Share and seed of the anchors that are held out from what reads `features` (`Anchors.split`).

    None: it learns from no true anchor.
    """
    layer, _, name = features.partition("/")
    if layer != "aligned" or aligned[name].anchors != "truth":
        return None
    return aligned[name].test_share, aligned[name].split_seed

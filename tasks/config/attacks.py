"""What a suite's own file says of attacks and of audits of training, as types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from tasks.attacks import ATTACKERS
from tasks.config.fields import BASE, Cutoffs, Name, Share, Strict, choice, require_distinct

HOLDS_PARAMETERS = True


class Attackers(Strict):
    """Which attackers see how much."""

    k: Annotated[Cutoffs, Field(min_length=1)]
    """Lengths of the list of recommendations that an attacker sees, one attack each."""
    attackers: Annotated[
        list[Annotated[str, choice("attacker", lambda: list(ATTACKERS))]],
        Field(min_length=1),
        AfterValidator(require_distinct),
    ]


class AttributeAttack(Attackers):
    """Attribute inference: `k` and `attackers` at the setting `base`."""

    kind: Literal["attribute"]
    sweep: Attackers
    """The same at all other settings."""
    lengths: dict[str, Cutoffs] = Field(default_factory=dict)
    """Attacker -> the only lengths of lists that it sees, where these are not all."""
    control_k: Annotated[Cutoffs, Field(min_length=1)]
    """Those `k` at which the attack is repeated on shuffled labels, and on other profiles than the true
    ones where a system was given such."""
    target_share: Share
    """Share of the users whose attributes must be guessed; the others' are known to the attacker."""
    split_seed: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _within_base(self) -> AttributeAttack:
        parts: list[tuple[str, Collection[object], Collection[object]]] = [
            ("sweep.k", self.sweep.k, self.k),
            ("sweep.attackers", self.sweep.attackers, self.attackers),
            ("control_k", self.control_k, self.k),
            ("lengths", self.lengths, self.attackers),
            *((f"lengths.{name}", ks, self.k) for name, ks in self.lengths.items()),
        ]
        for name, inner, outer in parts:
            if missing := [value for value in inner if value not in outer]:
                raise ValueError(f"{name}: {missing[0]} is not attacked at the setting base")
        return self

    def attackers_at(self, setting: str) -> Attackers:
        """Who attacks at a setting."""
        return self if setting == BASE else self.sweep

    def seeing(self, attackers: Iterable[str], k: int) -> list[str]:
        """Those who see lists of k items, or with k = 0 the ratings alone."""
        return [name for name in attackers if k in (0, *self.lengths.get(name, [k]))]


class EdgeAttack(Strict):
    """Edge inference: two worlds that differ in one interaction of a user's sequence."""

    kind: Literal["edges"]
    systems: Annotated[list[Name], Field(min_length=1), AfterValidator(require_distinct)]
    """Experiments whose aggregates and recommendations are attacked, at every setting that varies only their budget."""
    control: Name
    """The experiment without noise that an attacker must succeed against."""
    targets: Annotated[int, Field(ge=1)]
    """Tested users, one interaction of each."""
    trials: Annotated[int, Field(ge=8)]
    """Independent inferences in either world, per target; half of them teach the attacker."""
    k: Annotated[int, Field(ge=1)]
    """Length of the lists that the attacker sees."""
    seed: Annotated[int, Field(ge=0)]


class ReconstructionAttack(Strict):
    """Reconstruction of the ratings that users keep to themselves, from all that others hold after training."""

    kind: Literal["reconstruction"]
    ridge: Annotated[float, Field(gt=0)]
    """Weight of the squared norm of a user vector that an attacker fits to published ratings."""


class EmbeddingAttack(Strict):
    """Attacks on released embeddings of users.

    On sensitive attributes, on friendships and, where the users of two networks are in one space, on who is who.
    """

    kind: Literal["embeddings"]
    pairs: Annotated[int, Field(ge=4)]
    """Friendships drawn, and as many pairs of users who are no friends (fewer where there are fewer)."""
    known_share: Share
    """Share of both that the attacker knows; the others are to be distinguished."""
    wanted_precision: Annotated[float, Field(gt=0, le=1)]
    """Of the names that the attacker gives who names only those of whom it is sure."""
    k: Annotated[Cutoffs, Field(min_length=1)]
    """Lengths of the lists of accounts in which a person's own is looked for."""
    seed: Annotated[int, Field(ge=0)]
    """With the run's: of splits, pairs and halves, the same for all systems."""


class MembershipAttack(Strict):
    """Membership of users and of interactions, by shadow runs: the systems are trained again at setting `base`."""

    kind: Literal["membership"]
    systems: Annotated[list[Name], Field(min_length=1), AfterValidator(require_distinct)]
    """Experiments that are attacked."""
    shadows: Annotated[int, Field(ge=2)]
    """Shadow runs of each system, apart from the attacked one."""
    fewer: dict[Name, Annotated[int, Field(ge=2)]]
    """Experiment -> its shadow runs, where a run takes too long for as many."""
    asked: Annotated[int, Field(ge=1)]
    """Interactions of each user that are asked about, at most."""
    k: Annotated[int, Field(ge=1)]
    """Length of the lists that the attacker sees."""
    seed: Annotated[int, Field(ge=0)]
    """Of targets, coins and training."""

    def shadows_of(self, system: str) -> int:
        """Shadow runs of an experiment."""
        return self.fewer.get(system, self.shadows)


class AuditedRuns(Strict):
    """Which settings of an experiment are audited, and how it trains without noise."""

    settings: Annotated[list[str], Field(min_length=1), AfterValidator(require_distinct)]
    control: dict[str, object]
    """What is overridden in a setting so that it trains without noise: an auditor must succeed there."""


class TrainingAudit(Strict):
    """The audit of whole training runs: each audited setting is trained once more, with canaries among the users."""

    experiments: Annotated[dict[Name, AuditedRuns], Field(min_length=1)]
    canaries: Annotated[int, Field(ge=1)]
    """Made-up users, each in the training data with probability 1/2."""
    items: Annotated[int, Field(ge=1)]
    """Of each canary; the rarest ones."""
    guesses: Annotated[int, Field(ge=1)]
    """Of the auditor, half of them `in`; about no more canaries than there are."""
    confidence: Annotated[float, Field(ge=0.5, lt=1)]
    """Of all bounds together: one for each setting and auditor."""
    seed: Annotated[int, Field(ge=0)]
    """Of canaries, coins and training."""

    @model_validator(mode="after")
    def _one_guess_each(self) -> TrainingAudit:
        if self.guesses > self.canaries:
            raise ValueError(f"guesses: {self.guesses} about {self.canaries} canaries")
        return self

"""What every model promises, and the data it learns from."""

from __future__ import annotations

import json
import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from tasks.core.errors import ConfigurationError, DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.privacy import noise
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.insecurity import NO_NOISE


class ModelConfig(BaseModel):
    """Base of all model configurations: unknown keys are refused, values never change."""

    # an infinite budget survives being saved
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    @classmethod
    def noise_names(cls) -> dict[str, str]:
        """Field -> its name in keys of noise: what it was called when they were frozen, its serialisation alias."""
        return {name: field.serialization_alias or name for name, field in cls.model_fields.items()}


class Progress:
    """What an epoch-trained model (`tasks.models.training.EpochModel`) reports to.

    This one keeps and shows nothing and lets every epoch run; others keep checkpoints, validate and stop early.
    """

    def restore(self, model: Any) -> bool:
        """Load the last checkpoint of this run into `model`, if there is one; returns whether to go on from there."""
        del model
        return True

    def epoch(self, model: Any, loss: float) -> bool:
        """Called after every epoch; returns whether to go on."""
        del model, loss
        return True

    def finish(self, model: Any) -> None:
        """Called after the last epoch: loads the weights of the best epoch into `model`; here it keeps the last."""


SILENT = Progress()


class Model(ABC):
    """What is trained, saved and asked: a `Recommender`, a `NextItemRecommender`, or a `RatingPredictor`."""

    Config: ClassVar[type[ModelConfig]]
    """What a class says its attribute `config` is, unless it says this itself."""
    uses_features: ClassVar[bool] = False
    """Whether `fit` reads `TrainingData.features`."""
    uses_attributes: ClassVar[bool] = False
    """Whether `fit` reads `TrainingData.attributes`."""
    uses_ratings: ClassVar[bool] = False
    """Whether `fit` reads `TrainingData.ratings`."""
    uses_links: ClassVar[bool] = False
    """Whether `fit` reads `TrainingData.links`."""
    insecurity: ClassVar[str] = NO_NOISE
    """Why it cannot draw secure noise, where it cannot."""
    has_secure_noise: ClassVar[bool] = False
    """Whether what it draws for a finite budget ε can be secure."""
    kept_tensors: ClassVar[tuple[str, ...]] = ()
    """Attributes that are all that scoring needs, unless `released` and `restore_released` say otherwise."""
    own_tensors: ClassVar[tuple[str, ...]] = ()
    """Of `released`, what is computed from each user's own record and is for that user's eyes: no guarantee covers it
    towards anyone else. `save` writes it to a file of its own."""

    noise_key: ClassVar[str] = ""
    """Names the model in the key of its noise: what the class was called when keys were frozen."""
    named: tuple[str, ...] = ()
    """What else distinguishes the noise of this fit, besides its data, configuration and seed: data set,
    experiment and setting."""
    noise_mode: noise.Mode = "research"
    """Where `noise_stream` draws from: the seed, or the operating system."""
    device: torch.device = torch.device("cpu")
    """Where its tensors are between `fit` or `load` and `save`; what is written by NumPy alone stays on the CPU."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "Config" not in vars(cls) and (name := vars(cls).get("__annotations__", {}).get("config")):
            cls.Config = vars(sys.modules[cls.__module__])[name]

    def __init__(self, config: Any) -> None:
        self.config = config

    def noise_stream(self, data: TrainingData, rng: np.random.Generator) -> np.random.Generator:
        """A generator for everything that `fit` draws to hide something.

        It is independent of `rng` and of the noise of all other fits: two releases that shared noise would show their
        difference without any. Its key has all fields of the configuration, in order: one more, also at its default, or
        another order draws other noise.

        Raises:
            ConfigurationError: `noise_mode` is secure, and `insecure` says why that cannot be.
        """
        if self.noise_mode == "secure":
            if reason := self.insecure():
                raise ConfigurationError(f"noise: secure: {reason}")
            return noise.secure_generator()
        if not self.noise_key:
            raise ConfigurationError(f"{type(self).__name__} draws noise and has no noise_key")
        return noise.stream(rng, self.noise_key, self.config.model_dump_json(by_alias=True), data.digest, *self.named)

    def insecure(self) -> str:
        """Why the model, as configured, cannot draw secure noise; empty where it can."""
        return "" if self.has_secure_noise and not math.isinf(self.config.epsilon) else self.insecurity

    @abstractmethod
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Learn from `data`; fitting again forgets what was learned before."""

    def released(self) -> dict[str, Tensor]:
        """The tensors that scoring needs, by name, `own_tensors` among them."""
        return {name: getattr(self, name) for name in self.kept_tensors}

    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `released` gave."""
        vars(self).update(tensors)

    def ledger(self) -> list[LedgerEntry]:
        """What training spent; empty for a model without privacy."""
        return []

    def reads_features(self) -> bool:
        """Whether the model as configured reads the users' features, so that they must be accounted for."""
        return self.uses_features

    def reads_ratings(self) -> bool:
        """Whether the model as configured reads the ratings of interactions."""
        return self.uses_ratings

    def profiles(self) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Users and items of the interactions as the system was given them, where these are not the true ones."""
        return None

    def save(self, path: Path) -> None:
        """Write the fitted model as safetensors, the configuration as JSON in the header; equal models are equal bytes.

        `path` (a file) is what a guarantee is of. `own_tensors` are in `own_file(path)`, which is not to be released.
        """
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.released().items()}
        local = {name: tensors.pop(name) for name in self.own_tensors if name in tensors}
        about = {"config": self.config.model_dump_json(), "own": list(local)}
        save_file(tensors, path, metadata={"model": json.dumps(about)})  # one entry: the library mixes several
        if local:
            save_file(local, own_file(path))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote, of which nothing is unpickled; the loaded model scores exactly as the saved one.

        Raises:
            DataError: the file is missing, damaged, or of another kind of model, or that of `own_tensors` is.
        """
        local = own_file(path)
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
                about = json.loads(file.metadata()["model"])
                config = cls.Config.model_validate_json(about["config"])
                if about["own"] and not local.exists():
                    raise DataError(f"{path}: {local.name} is not next to it, without which no user can be scored")
            if about["own"]:
                tensors |= load_file(local)
        except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
            raise DataError(f"{path}: not a saved model ({' '.join(str(error).split())}); train it again") from error
        model = cls(config)
        model.restore_released({name: tensor.to(model.device) for name, tensor in tensors.items()})
        return model


def own_file(path: Path) -> Path:
    """Where `Model.save` puts what is for each user's own eyes: `model.own.safetensors` next to `model.safetensors`."""
    return path.with_suffix(".own.safetensors")


class Recommender(Model):
    """A top-K recommender. After `fit` (or `load`) it scores every user against every item."""

    @abstractmethod
    def score(self, users: NDArray[np.int32]) -> Tensor:
        """Scores of `users` for all items: (len(users), n_items) float32, finite; higher is better.

        A user without training interactions is scored like any other.
        """


class NextItemRecommender(Model):
    """A recommender of what comes next. After `fit` (or `load`) it scores every prefix of any sequence.

    `fit` reads `TrainingData.sequences`. What it keeps of a user besides the model (features, a state) is found again
    by the user's id.
    """

    @abstractmethod
    def score_next(self, sequences: Sequences) -> Tensor:
        """Scores of all items after each event, given it and the ones before it: (n_events, n_items) float32, finite.

        Higher is better. A sequence is scored the same whichever others are asked about next to it.
        """


@dataclass(frozen=True)
class Received:
    """What someone got from users again and again during training, averaged over iterations.

    All noise in it has a variance that the receiver knows, because the receiver drew it (PrivSR's h).

    senders: (n,) int32 users who sent it.
    subjects: (n,) int32 items that it is about, or the users who got it.
    mean: (n, K) float32, the plain average over iterations.
    mean_variance: (n,) float32, variance of the noise in one coordinate of `mean`; 0 without noise.
    weighted: (n, K) float32, averaged with the inverse variances of each iteration's noise as weights, by coordinate.
    weighted_variance: (n, K) float32, variance of the noise in `weighted`.
    """

    senders: NDArray[np.int32]
    subjects: NDArray[np.int32]
    mean: NDArray[np.float32]
    mean_variance: NDArray[np.float32]
    weighted: NDArray[np.float32]
    weighted_variance: NDArray[np.float32]


@dataclass(frozen=True)
class Observed:
    """What an untrusted recommender and untrusted friends hold after training, next to the published ratings.

    items: (n_items, K) float32 item vectors at the end.
    mean_items: (n_items, K) float32, averaged over the iterations whose messages are.
    submissions: what the recommender got about sensitive ratings (`subjects` are items): of a user with vector u,
        2 (uᵀv - r) u and noise. None where nothing is submitted.
    friends: what one friend of each user got of that user's vector u: u and noise, the known similarity divided out.
        None where friends exchange nothing.
    """

    items: NDArray[np.float32]
    mean_items: NDArray[np.float32]
    submissions: Received | None = None
    friends: Received | None = None


@dataclass(frozen=True)
class Replayed:
    """What an untrusted recommender keeps of single submissions, and what it expects of their averages.

    It expects w of a user's vector: what the user's steps on published ratings alone would make of it.

    senders, subjects: (n,) int32 users and items, as in `Received`.
    first: (n, K) float32, the submission of the first iteration.
    first_variance: (n, K) float32, variance of the noise in it, given what the recommender drew; 0 without noise.
    first_items: (n, K) float32, the item's vector in that iteration.
    expected: (n, K) float32, (wᵀv) w of all iterations, averaged as `Received.weighted` is.
    along: (n, K) float32, w of all iterations, averaged likewise.
    """

    senders: NDArray[np.int32]
    subjects: NDArray[np.int32]
    first: NDArray[np.float32]
    first_variance: NDArray[np.float32]
    first_items: NDArray[np.float32]
    expected: NDArray[np.float32]
    along: NDArray[np.float32]


@dataclass(frozen=True)
class Information:
    """What all submissions of a user together say of the user's sensitive ratings r: G = H (r - g) and noise N(0, H).

    senders, subjects: (n,) int32 users and items, sorted by both.
    guess: (n,) g, what published ratings make expect.
    gradient: (n,) G.
    matrix: (Σ n_i²,) H, of every user i in turn the n_i x n_i entries, row by row.
    """

    senders: NDArray[np.int32]
    subjects: NDArray[np.int32]
    guess: NDArray[np.float64]
    gradient: NDArray[np.float64]
    matrix: NDArray[np.float64]


class RatingPredictor(Model):
    """A predictor of ratings. After `fit` (or `load`) it predicts the rating that any user would give any item.

    `fit` reads `TrainingData.ratings` and `TrainingData.sensitive`.
    """

    uses_ratings: ClassVar[bool] = True

    @abstractmethod
    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> Tensor:
        """Predicted ratings of pairs: (n_pairs,) float32, finite, not cut off at the ends of the scale.

        A user or an item without ratings is predicted like any other.
        """

    def observed(self) -> Observed | None:
        """What others than the users hold after `fit`; None where there are no item vectors. Not kept by `save`."""
        return None

    def replayed(self) -> Replayed | None:
        """Of the submissions of the last `fit`; None where nothing is submitted, and for a loaded model."""
        return None

    def information(self) -> Information | None:
        """Of the last `fit`; None where messages depend on no trained sensitive rating, and for a loaded model."""
        return None

    def communication(self) -> dict[str, float]:
        """Messages and bytes that users send and get per iteration, and how many iterations there were.

        Keys: `messages`, `bytes`, `iterations`; what there is none of is left out.
        """
        return {}

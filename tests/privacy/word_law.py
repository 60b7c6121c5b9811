"""The whole law of word substitution, made of the weights that it draws from."""

import numpy as np
from numpy.typing import NDArray

from tasks.privacy.checks import check_epsilon
from tasks.privacy.mechanisms import words


def probabilities(chosen: NDArray[np.integer], vectors: NDArray[np.floating], epsilon: float) -> NDArray[np.float64]:
    """The law that `substitute` draws from: (n_words, |V|), a row per word asked for."""
    check_epsilon(epsilon)
    centred = words._centre(vectors)
    pieces = words._weights(words._check(chosen, len(centred)), centred, epsilon)
    return np.concatenate([weights / weights.sum(axis=1, keepdims=True) for _, weights in pieces])

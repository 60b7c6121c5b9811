"""What an attack gains over its controls: the majority guess, the ratings alone, and shuffled labels.

An attack gains over a control only if the whole 95 % interval of the difference lies above zero. The interval is for
other seeds of the system and for other users to attack (`tasks.evaluation.statistics.crossed_interval`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.evaluation.statistics import crossed_interval

CONTROLS = ("majority", "ratings", "random")
"""The most frequent class for everyone; the same attacker, shown no recommendation; the same attacker, taught and
judged on labels that were shuffled again among the users."""
GAINS = pa.schema(
    [
        pa.field("setting", pa.string(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("attacker", pa.string(), nullable=False),
        pa.field("k", pa.int32(), nullable=False),  # 0: the ratings alone
        pa.field("control", pa.string(), nullable=False),  # one of CONTROLS
        pa.field("gain", pa.float64(), nullable=False),
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
    ]
)


class Gain(NamedTuple):
    """How many more of the attacked users an attack gets right than its control, as a share, with its 95 % interval."""

    mean: float
    low: float
    high: float


def gain(right: NDArray[np.bool_], control: NDArray[np.bool_]) -> Gain:
    """The gain of an attack over a control.

    Args:
        right: (n_seeds, n_targets) whether the attack guessed a target right.
        control: (n_seeds, n_targets) the same of the control, for the same seeds and targets in the same order; or
            (1, n_targets) where nothing in it is drawn.
    """
    difference = right.astype(np.float64) - control
    return Gain(float(difference.mean()), *crossed_interval(difference))

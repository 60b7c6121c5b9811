"""What an attack gains over its controls.

The most frequent class for everyone ("majority"); the same attacker, shown no recommendation ("ratings"), or taught and
judged on labels that were shuffled again among the users ("random").

An attack gains over a control where the interval of the difference lies above zero; its level is stated where the
difference is read (`tasks.results.significance`).
"""

from __future__ import annotations

import pyarrow as pa

GAINS = pa.schema(
    [
        pa.field("setting", pa.string(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("attacker", pa.string(), nullable=False),
        pa.field("k", pa.int32(), nullable=False),  # 0: the ratings alone
        pa.field("control", pa.string(), nullable=False),
        pa.field("gain", pa.float64(), nullable=False),
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
    ]
)

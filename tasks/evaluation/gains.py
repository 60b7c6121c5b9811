"""What an attack gains over its controls.

The most frequent class for everyone ("majority"); the same attacker, shown no recommendation ("ratings"), or trained
and tested on labels that were shuffled again among the users ("random").

An attack gains over a control where the interval of the difference lies above zero; its level is stated where the
difference is read (`tasks.results.significance`).
"""

from __future__ import annotations

from tasks.core.contracts import DOUBLE, INT, TEXT, contract

GAINS = contract(setting=TEXT, attribute=TEXT, attacker=TEXT, k=INT, control=TEXT, gain=DOUBLE, low=DOUBLE, high=DOUBLE)

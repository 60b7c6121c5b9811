"""Attacks: what released things tell of attributes, membership, links and people. For systems of your own."""

from tasks.attacks.attribute import attack as infer_attributes
from tasks.attacks.attribute import profiles
from tasks.attacks.embeddings.anchors import reidentify
from tasks.attacks.embeddings.links import steal as steal_links
from tasks.attacks.membership import lira_offline, lira_online, loss_threshold, rmia
from tasks.evaluation.statistics import Gain, gain

__all__ = [
    "Gain",
    "gain",
    "infer_attributes",
    "lira_offline",
    "lira_online",
    "loss_threshold",
    "profiles",
    "reidentify",
    "rmia",
    "steal_links",
]

"""Private releases: lists for users' own rows from a folder that `dprec release` wrote."""

from tasks.release.files import load
from tasks.release.serving import Recommender

__all__ = ["Recommender", "load"]

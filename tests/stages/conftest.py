"""Stages render pages, too."""

from tests.drawn import drawn_once  # noqa: F401

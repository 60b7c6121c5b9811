"""The kinds of charts, a small function each: Altair describes, vl-convert draws static SVG. Words come from templates."""

from __future__ import annotations

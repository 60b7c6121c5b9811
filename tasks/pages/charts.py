"""The kinds of charts, a small function each: Altair describes, vl-convert draws static SVG. Words stand elsewhere."""

from __future__ import annotations

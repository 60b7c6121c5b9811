"""Splits, rankings, metrics and statistics."""

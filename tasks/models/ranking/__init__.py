"""Recommenders of lists."""

"""Replicas of published data sets, and the demo: every row is drawn at random, by a seed."""

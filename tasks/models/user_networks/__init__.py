"""Embeddings of users of social networks: single networks, and two of them joined at anchors (DP-CroSUE)."""

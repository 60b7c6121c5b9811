"""Attacks on released embeddings of a network's users: on their attributes, their links, and who they are elsewhere.

Source: DP-CroSUE, section 5.5; docs/methods.md §7. Every attack has its level of chance, intervals, and the same attack
on what an attacker has without the release.
"""

"""DP-CroSUE: protocol, printed tables and figures, claims, drawings."""

NETWORKS = True
"""Its protocol makes networks of users."""

"""DP-CroSUE: protocol, printed tables and figures, claims, drawings."""

"""GERAI: protocol, printed tables and figures, claims, drawings."""

"""DIPSGNN: protocol, printed tables and figures, claims, drawings."""

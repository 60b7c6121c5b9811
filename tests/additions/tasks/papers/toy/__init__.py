"""A toy paper: protocol, invented figures, claims, drawings."""

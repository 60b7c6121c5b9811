"""DP-VAE: protocol, printed tables and figures, claims, drawings."""

"""Autoencoders of users' rows: AE, VAE, and DP-VAE with priors from users' metadata."""

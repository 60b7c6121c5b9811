"""Mult-VAE's evaluation of users who were not trained on: protocol and published results of other systems under it."""

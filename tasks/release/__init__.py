"""A private release of anyone's interactions, and recommenders fitted from it at no further cost (docs/release.md)."""

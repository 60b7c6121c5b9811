"""A private release of anybody's interactions, and recommenders fitted from it at no further cost (docs/release.md)."""

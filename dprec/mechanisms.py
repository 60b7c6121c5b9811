"""Mechanisms: values in, noisy values out. docs/methods.md has the formulas."""

from tasks.privacy.mechanisms.edges import top_m_filter
from tasks.privacy.mechanisms.functional import noise_scale
from tasks.privacy.mechanisms.laplace import cap, noisy_counts
from tasks.privacy.mechanisms.piecewise import perturb as piecewise
from tasks.privacy.mechanisms.unary import perturb as unary_encoding
from tasks.privacy.mechanisms.words import substitute as substitute_words

__all__ = ["cap", "noise_scale", "noisy_counts", "piecewise", "substitute_words", "top_m_filter", "unary_encoding"]

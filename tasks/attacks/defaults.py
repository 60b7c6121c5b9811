"""The attackers that GERAI names (§5.8) as scikit-learn has them by default: nothing is scaled and nothing tuned.

The levels of the paper's Table 5, of which some are below the majority guess, are those of these (docs/methods.md §7).
"""

from __future__ import annotations

import numpy as np
from sklearn import config_context
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import PairwiseKernel
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from tasks.attacks.attribute import Labels, Profiles


def decision_tree(train: Profiles, labels: Labels, test: Profiles, rng: np.random.Generator) -> Labels:
    """Decision tree grown until its leaves are pure."""
    return DecisionTreeClassifier(random_state=int(rng.integers(2**31))).fit(train, labels).predict(test)


def naive_bayes(train: Profiles, labels: Labels, test: Profiles, _: np.random.Generator) -> Labels:
    """Gaussian naive Bayes on the counts."""
    return GaussianNB().fit(train, labels).predict(test)


def knn(train: Profiles, labels: Labels, test: Profiles, _: np.random.Generator) -> Labels:
    """The nearest neighbour by Euclidean distance."""
    return KNeighborsClassifier(1).fit(train, labels).predict(test)


def gaussian_process(train: Profiles, labels: Labels, test: Profiles, _: np.random.Generator) -> Labels:
    """Gaussian process with kernel exp(-‖x - y‖²/2), one against the rest."""
    # the same kernel as the default's, by matrix products
    kernel = PairwiseKernel(gamma=0.5, gamma_bounds="fixed", metric="rbf")
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return GaussianProcessClassifier(kernel).fit(train.astype("f8"), labels).predict(test.astype("f8"))

"""Names of attackers in params.yaml -> where they are defined; imported only when asked for."""

ATTACKERS = {
    "neural": "tasks.attacks.attribute:neural",
    "decision_tree": "tasks.attacks.attribute:decision_tree",
    "naive_bayes": "tasks.attacks.attribute:naive_bayes",
    "knn": "tasks.attacks.attribute:knn",
    "gaussian_process": "tasks.attacks.attribute:gaussian_process",
    "default_decision_tree": "tasks.attacks.defaults:decision_tree",
    "default_naive_bayes": "tasks.attacks.defaults:naive_bayes",
    "default_knn": "tasks.attacks.defaults:knn",
    "default_gaussian_process": "tasks.attacks.defaults:gaussian_process",
}

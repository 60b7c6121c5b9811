"""Bugs in mechanisms: noisy counts, perturbed features, edges and words, perturbed objectives (methods.md §1, §2, §6)."""

from __future__ import annotations

from tests.privacy.planted.mutation import Mutation

PRIVACY = "tasks/privacy/mechanisms/"
RANKING = "tasks/models/ranking/"

COUNTS = (
    Mutation(
        "counts-scale",
        "noise of one count, where a user adds to as many as the cap allows",
        "§1",
        PRIVACY + "laplace.py",
        "success = -math.expm1(-epsilon / contribution)",
        "success = -math.expm1(-epsilon)",
    ),
    Mutation(
        "counts-one-sided",
        "one geometric variable in place of the difference of two",
        "§1",
        "tasks/privacy/noise.py",
        "drawn = rng.geometric(success, shape) - rng.geometric(success, shape)",
        "drawn = rng.geometric(success, shape) - 1",
    ),
    Mutation(
        "counts-cap-open",
        "the cap keeps every distinct interaction of a user",
        "§1",
        PRIVACY + "laplace.py",
        "kept[order[np.arange(len(order)) - first < contribution]] = True",
        "kept[order] = True",
    ),
    Mutation(
        "popularity-cap-ignored",
        "dp-popularity draws a cap and counts all interactions",
        "§8",
        RANKING + "popularity.py",
        "counts = np.bincount(data.items[kept], minlength=data.n_items)",
        "counts = np.bincount(data.items, minlength=data.n_items)",
    ),
    Mutation(
        "popularity-ledger-halved",
        "the ledger of dp-popularity says half of what is spent",
        "§9",
        RANKING + "popularity.py",
        'noise = {"noise_parameter": budget / contribution, "sensitivity": float(contribution)}',
        'noise = {"noise_parameter": budget / contribution / 2, "sensitivity": float(contribution)}',
    ),
    Mutation(
        "dpmf-rigorous-twice",
        "dpmf-rigorous draws noise of 2ε",
        "§2",
        RANKING + "dpmf.py",
        "counts = laplace.noisy_counts(counts, config.epsilon, 1, rng)",
        "counts = laplace.noisy_counts(counts, 2 * config.epsilon, 1, rng)",
    ),
    Mutation(
        "dpmf-rigorous-own-groups",
        "the items' vectors also hold the exact counts: noise is added to a copy",
        "§2",
        RANKING + "dpmf.py",
        "return counts.reshape(data.n_items, config.dimension) / (sizes + config.ridge)",
        "exact = np.bincount(pairs, minlength=data.n_items * config.dimension)\n"
        "    return exact.reshape(data.n_items, config.dimension) / (sizes + config.ridge)",
    ),
)

FEATURES = (
    Mutation(
        "pm-exponent",
        "the piecewise mechanism's inner piece has the probability of 2ε: e^ε in place of e^(ε/2)",
        "§1",
        PRIVACY + "piecewise.py",
        "return 1 / (1 + math.exp(-epsilon / 2))",
        "return 1 / (1 + math.exp(-epsilon))",
    ),
    Mutation(
        "oue-true-bits",
        "unary encoding keeps every true bit",
        "§1",
        PRIVACY + "unary.py",
        "ones = np.where(block == 1, TRUE_BIT, false_bit(epsilon))",
        "ones = np.where(block == 1, 1.0, false_bit(epsilon))",
    ),
    Mutation(
        "oue-symmetric",
        "unary encoding keeps a true bit as often as it keeps a false one, which spends 2ε",
        "§1",
        PRIVACY + "unary.py",
        "ones = np.where(block == 1, TRUE_BIT, false_bit(epsilon))",
        "ones = np.where(block == 1, 1 - false_bit(epsilon), false_bit(epsilon))",
    ),
    Mutation(
        "features-budget-not-split",
        "each sampled feature gets the whole budget",
        "§1",
        PRIVACY + "multidimensional.py",
        "_check(matrix, features)\n    budget, scale = epsilon / sampled, len(features) / sampled",
        "_check(matrix, features)\n    budget, scale = epsilon, len(features) / sampled",
    ),
    Mutation(
        "features-not-sampled",
        "all features are released, each with the share of a sampled one",
        "§1",
        PRIVACY + "multidimensional.py",
        "chosen = _sample(len(matrix), len(features), sampled, rng)",
        "chosen = _sample(len(matrix), len(features), len(features), rng)",
    ),
    Mutation(
        "features-one-query",
        "the ledger counts one sampled feature in place of ζ",
        "§9",
        PRIVACY + "multidimensional.py",
        'Event(kind="pure-local", parameters={"epsilon": epsilon / sampled}, count=sampled)',
        'Event(kind="pure-local", parameters={"epsilon": epsilon / sampled})',
    ),
)

EDGES = (
    Mutation(
        "tmf-true-m",
        "the threshold comes from the true number of edges",
        "§6",
        PRIVACY + "edges.py",
        "target = min(max(int(noisy[0]), 0), n_cells(n_nodes))",
        "target = min(max(len(keys), 0), n_cells(n_nodes))",
    ),
    Mutation(
        "tmf-edges-kept",
        "true edges pass without noise",
        "§6",
        PRIVACY + "edges.py",
        'kept = keys[noise.uniform(rng, "which edges pass", len(keys)) >= tail(1 - theta, epsilon)]',
        "kept = keys",
    ),
    Mutation(
        "tmf-count-budget",
        "the number of edges gets noise of the cells' budget",
        "§6",
        PRIVACY + "edges.py",
        "laplace.noisy_counts(np.array([len(keys)]), epsilon_count, 1, rng)",
        "laplace.noisy_counts(np.array([len(keys)]), epsilon, 1, rng)",
    ),
    Mutation(
        "tmf-count-free",
        "the ledger leaves out what the number of edges costs",
        "§9",
        PRIVACY + "edges.py",
        'return count, Event(kind=cells, parameters={"epsilon": epsilon})',
        'return (Event(kind=cells, parameters={"epsilon": epsilon}),)',
    ),
    Mutation(
        "tmf-count-twice",
        "rigorous cells keep the whole budget beside that of the count",
        "§6",
        PRIVACY + "edges.py",
        'return (epsilon, count) if mode == "published" else (epsilon - count, count)',
        "return (epsilon, count)",
    ),
    Mutation(
        "tmf-filled-up",
        "rigorous graphs are filled up with non-edges to the noisy number, as published ones are",
        "§6",
        PRIVACY + "edges.py",
        'n_false = noise.binomial(rng, "how many non-edges pass", n_others, tail(theta, epsilon))',
        "n_false = min(max(target - len(kept), 0), n_others)",
    ),
    Mutation(
        "tmf-two-sided",
        "non-edges pass as often as Laplace noise of 2ε does",
        "§6",
        PRIVACY + "edges.py",
        'n_false = noise.binomial(rng, "how many non-edges pass", n_others, tail(theta, epsilon))',
        'n_false = noise.binomial(rng, "how many non-edges pass", n_others, tail(theta, 2 * epsilon))',
    ),
)

WORDS = (
    Mutation(
        "words-half-missing",
        "words are drawn with exp(-ε d), which spends 2ε",
        "§6",
        PRIVACY + "words.py",
        "distances *= -epsilon / 2",
        "distances *= -epsilon",
    ),
    Mutation(
        "words-one-for-all",
        "the budget of a whole text is given to every word",
        "§6",
        PRIVACY + "words.py",
        "return total / (n_words * diameter)",
        "return total / diameter",
    ),
    Mutation(
        "words-mean-distance",
        "the mean distance stands for the diameter",
        "§6",
        PRIVACY + "words.py",
        "return max((float(distances.max()) for _, distances in blocks), default=0.0)",
        "return max((float(distances.mean()) for _, distances in blocks), default=0.0)",
    ),
    Mutation(
        "words-cap-open",
        "all words of a user are released, where the budget is for so many",
        "§6",
        PRIVACY + "posts.py",
        "return rebuilt(users, lengths, tokens, before < most)",
        "return rebuilt(users, lengths, tokens, before >= 0)",
    ),
    Mutation(
        "words-ledger-one",
        "the ledger of a user's whole text counts one word",
        "§9",
        PRIVACY + "words.py",
        'any_word.model_copy(update={"count": n_words})',
        'any_word.model_copy(update={"count": 1})',
    ),
)

OBJECTIVES = (
    Mutation(
        "fm-sensitivity",
        "the functional mechanism's sensitivity is that of one triple's coefficients, not of a replaced triple",
        "§2",
        PRIVACY + "functional.py",
        "return dim + dim * dim / 4",
        "return dim / 2 + dim * dim / 8",
    ),
    Mutation(
        "fm-linear-only",
        "quadratic coefficients get no noise",
        "§2",
        PRIVACY + "functional.py",
        'quadratic = noise.laplace(rng, "quadratic coefficients", scale, (dim, dim))',
        "quadratic = np.zeros((dim, dim))",
    ),
    Mutation(
        "fm-unbounded",
        "q is not kept below 1, so the sensitivity does not hold",
        "§2",
        RANKING + "gerai/gerai.py",
        'return pair.clamp(0.0, 1.0) if self.config.bound == "clip" else torch.tanh(torch.relu(pair))',
        'return pair.clamp(min=0.0) if self.config.bound == "clip" else torch.tanh(torch.relu(pair))',
    ),
    Mutation(
        "fm-redrawn",
        "noise is drawn in every step and averages away",
        "§2",
        RANKING + "gerai/gerai.py",
        'if self.config.redraw == "step":\n            self.network',
        'if self.config.redraw in ("step", "run"):\n            self.network',
    ),
    Mutation(
        "objective-no-root",
        "objective perturbation forgets √d, the L1 norm of a unit vector",
        "§2",
        PRIVACY + "objective.py",
        "return 2 * sensitivity * math.sqrt(dim) / epsilon",
        "return 2 * sensitivity / epsilon",
    ),
    Mutation(
        "objective-half",
        "the linear term is added to the gradient at half its weight",
        "§2",
        PRIVACY + "objective.py",
        "return np.linalg.solve(curvature, (cells.T @ users - noise / 2).T).T",
        "return np.linalg.solve(curvature, (cells.T @ users - noise / 4).T).T",
    ),
    Mutation(
        "objective-long-users",
        "user vectors longer than 1 are let in",
        "§2",
        PRIVACY + "objective.py",
        "if wrong := int((~(lengths <= 1 + ROUNDING)).sum()):",
        "if wrong := int(np.isnan(lengths).sum()):",
    ),
    Mutation(
        "dpne-uncapped",
        "mutual information is not clipped from above, though the cap is the sensitivity",
        "§2",
        RANKING + "dpne.py",
        "return np.clip(-np.log(expected) - math.log(shift), 0.0, cap)",
        "return np.maximum(-np.log(expected) - math.log(shift), 0.0)",
    ),
)

MUTATIONS = (*COUNTS, *FEATURES, *EDGES, *WORDS, *OBJECTIVES)

"""Bugs where two things meet that are right alone: law and mode, bound and share, unit and steps, iterations saved."""

from __future__ import annotations

from tests.privacy.planted.mutation import Mutation

DOOR, SGD = "tasks/privacy/noise.py", "tasks/privacy/mechanisms/user_sgd.py"
UNITS, COMPOSITION = "tasks/privacy/units.py", "tasks/results/composition.py"
LAWS = ("tests/privacy/test_secure.py::test_numbers_follow_their_law",)
CHOICES = ("tests/privacy/test_secure.py::test_whole_numbers_and_choices_follow_their_law",)
PRESENCE = ("tests/privacy/test_user_sgd.py::test_one_users_presence_moves_a_step_by_no_more_than_is_accounted",)
STEPS = ("tests/privacy/test_units.py::test_a_guarantee_counts_in_as_many_steps_as_neighbours_of_the_unit_are_apart",)
BOOKS = ("tests/models/test_draws_and_ledger.py::test_draws_are_those_that_the_ledger_books",)
ACCOUNTING = "tests/privacy/test_accounting.py::"
TOGETHER = ("tests/pages/test_composition.py::test_all_events_count_in_all_of_their_steps_at_the_largest_delta",)
ACCOUNT = "tasks/privacy/accounting/account.py"
EVERY = "tests/privacy/test_accounting.py::test_every_release_counts_each_time_whatever_it_is_composed_with"
ACCOUNTED = tuple(f"{EVERY}[{kinds}-0.01]" for kinds in ("small-large", "small-sampled", "small-large-gaussian"))
ADD_LAPLACE = 'secure.add(rng, "laplace", value, scale, sensitivity)'
ADD_GAUSSIAN = 'secure.add(rng, "gaussian", value, std, sensitivity)'
COUNTED = "in the count of small norms a user of a small budget"

MUTATIONS = tuple(
    Mutation(name, wrong, section, file, old, new, tests, written="with tests read")
    for name, wrong, section, file, old, new, tests in (
        ("secure-laplace-gaussian", "secure Laplace noise is Gaussian", "§11", DOOR,
         ADD_LAPLACE, ADD_LAPLACE.replace("laplace", "gaussian"), LAWS),
        ("secure-gaussian-laplace", "secure Gaussian noise is Laplace", "§11", DOOR,
         ADD_GAUSSIAN, ADD_GAUSSIAN.replace("gaussian", "laplace"), LAWS),
        ("secure-laplace-half", "secure Laplace noise has half its scale", "§11", DOOR,
         ADD_LAPLACE, ADD_LAPLACE.replace("scale", "scale / 2"), LAWS),
        ("secure-binomial", "in secure mode as many non-edges pass as are expected", "§11", DOOR,
         "rng.binomial(n, probability)",
         "round(n * probability) if isinstance(rng, SecureGenerator) else rng.binomial(n, probability)", CHOICES),
        ("secure-subset", "in secure mode the first ones are chosen", "§11", DOOR,
         "rng.choice(of, count, replace=False, shuffle=False))",
         "of[:count] if isinstance(rng, SecureGenerator) else rng.choice(of, count, replace=False))", CHOICES),
        ("count-unshared", f"{COUNTED} adds as much as one of the largest", "§4", SGD,
         "below = shares * torch.where", "below = torch.where", PRESENCE),
        ("count-per-example", f"{COUNTED}, as any other, adds a half for each of J examples", "§4", SGD,
         ".to(norms.dtype) - 0.5, 0.0) / examples", ".to(norms.dtype) - 0.5, 0.0)", PRESENCE),
        ("shares-tiled", "of several examples, some are clipped at another user's share", "§4", SGD,
         "np.repeat(self.shares[users], examples)", "np.tile(self.shares[users], examples)", PRESENCE),
        ("shares-unless-quantile", "where the bound is adaptive, users are clipped at all of it", "§4", SGD,
         "factors = shares * dpsgd", "factors = (shares if self.quantile is None else 1.0) * dpsgd", PRESENCE),
        ("count-free-unequal", "the quantile's count is free where budgets differ", "§9", SGD,
         "if quantile is not None and self.multiplier:",
         "if quantile is not None and self.multiplier and (self.shares == 1).all():", PRESENCE),
        ("quantile-beside", "where the bound is adaptive, what is released next to the steps is free", "§9", SGD,
         "self.plan.multiplier(epsilon_max, delta, composed_with)",
         "self.plan.multiplier(epsilon_max, delta, () if quantile else composed_with)",
         ("tests/privacy/test_user_sgd.py::test_what_is_released_beside_the_steps_takes_its_part_of_the_budget",)),
        ("quantile-counts", "where the bound is adaptive, counts that biases start at are free", "§9",
         "tasks/models/vae/userwise_ledger.py", "config.quantile, _counts(config),",
         "config.quantile, () if config.quantile else _counts(config),",
         ("tests/models/test_userwise.py::test_popularity_starts_at_counts_that_are_paid_for",)),
        ("steps-value", "a rating's other value is one interaction apart, not one out and one in", "§9", UNITS,
         '"rating-value": {"rating-value": 1, "interaction": 2',
         '"rating-value": {"rating-value": 1, "interaction": 1', STEPS),
        ("steps-profile", "other features are one profile apart, not one out and one in", "§9", UNITS,
         '{"features": 1, "user-with-metadata": 2}', '{"features": 1, "user-with-metadata": 1}', STEPS),
        ("steps-cell", "a guarantee for listed cells bounds any interaction", "§9", UNITS,
         '"interaction": {"interaction": 1,', '"interaction": {"interaction": 1, "listed-cell": 1,', STEPS),
        ("steps-gaussian-once", "Gaussian releases of larger units count once, not each time", "§9", UNITS,
         "return Event(kind=kind, parameters=parameters, count=event.count)",
         'return Event(kind=kind, parameters=parameters, count=event.count if kind == "laplace" else 1)',
         ("tests/privacy/test_units.py::test_two_steps_of_gaussian_noise_are_twice_its_sensitivity_and_sampling_gains_nothing",)),
        ("popularity-start-one-item", "counts that biases start at get noise for one item of a user", "§1",
         "tasks/models/vae/userwise.py", "noisy_counts(counts, budget, config.contribution,",
         "noisy_counts(counts, budget, 1,",
         ("tests/models/test_userwise.py::test_popularity_counts_no_more_of_a_user_than_is_paid_for",)),
        ("together-first-event", "of a release's events the first one counts", "§9", COMPOSITION,
         "for event in release.entry.events):", "for event in release.entry.events[:1]):", TOGETHER),
        ("together-smallest-delta", "releases together are accounted at their smallest δ", "§9", COMPOSITION,
         "delta = max(release.entry", "delta = min(release.entry", TOGETHER),
        ("counts-of-users", "noise for one interaction passes for noise for a whole user", "§9",
         "tasks/models/ranking/dpmf.py", 'unit="interaction"', 'unit="user"', BOOKS),
        ("edges-of-users", "noise for one friendship passes for noise for all of a user's", "§9",
         "tasks/privacy/mechanisms/edges.py", 'unit="edge"', 'unit="user"',
         ("tests/privacy/test_edges.py::test_rigorous_releases_cost_what_the_ledger_says_whatever_comes_out",)),
        ("iterations-performed", "iterations that validation saved are not accounted", "§11",
         "tasks/models/social/privsr.py", "self.noise_multiplier(), config.iterations, raters",
         "self.noise_multiplier(), done, raters",
         ("tests/models/test_social_rigorous.py::test_the_ledger_accounts_for_all_iterations_within_the_budget",)),
        ("account-large-dropped", "large pure releases are dropped where there are small ones", "§9", ACCOUNT,
         "large + _compose(small", "_compose(small", ACCOUNTED),
        ("account-gaussian-beside-large", "Gaussian noise is dropped next to large pure releases", "§9", ACCOUNT,
         "_compose(small, multiplier,", "_compose(small, None if large else multiplier,", ACCOUNTED),
        ("account-pure-beside-sampled", "pure releases are dropped where steps are sampled", "§9", ACCOUNT,
         "< LARGE] + sampled", "< LARGE and not sampled] + sampled", ACCOUNTED),
        ("account-discrete-sensitivity", "at δ > 0 discrete Laplace noise counts for a sensitivity of 1", "§9", ACCOUNT,
         "(noise, sensitivity,", "(noise, 1,",
         (ACCOUNTING + "test_one_discrete_laplace_release_at_positive_delta_matches_its_hockey_stick",)),
    )
)  # fmt: skip

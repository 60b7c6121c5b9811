"""Bugs thought of with the tests in view: where they might look past one."""

from __future__ import annotations

from functools import partial

from tests.privacy.planted.mutation import Mutation as AnyMutation

MECHANISMS = "tasks/privacy/mechanisms/"
MODELS = "tasks/models/"
Mutation = partial(AnyMutation, written="with tests read")

MUTATIONS = (
    Mutation(
        "counts-one-draw",
        "all counts get the same noise, which differences of counts do without",
        "§11",
        MECHANISMS + "laplace.py",
        'noise.discrete_laplace(rng, "item counts", noise_parameter, counts.shape)',
        'noise.discrete_laplace(rng, "item counts", noise_parameter, (1,) * counts.ndim)',
        tests=(
            "tests/privacy/test_laplace.py::test_noise_is_discrete_laplace",
            "tests/privacy/test_laplace.py::test_counts_are_shifted_not_scaled",
        ),
    ),
    Mutation(
        "objective-one-draw",
        "all items get the same linear term",
        "§11",
        MECHANISMS + "objective.py",
        'return noise.laplace(rng, "linear terms", scale, (n_items, dim))',
        'return np.repeat(noise.laplace(rng, "linear terms", scale, (1, dim)), n_items, axis=0)',
        tests=("tests/privacy/test_objective.py::test_the_noise_is_laplace",),
    ),
    Mutation(
        "means-one-draw",
        "all items' sums get the same noise",
        "§11",
        MODELS + "social/rating_means.py",
        'noisy = noise.add_laplace(secret, "sums of ratings", exact, noise_scale, sensitivity=span)',
        'noisy = exact + noise.laplace(secret, "sums of ratings", noise_scale, 1)',
        tests=(
            "tests/models/test_rating_means.py::test_noise_is_laplace_of_the_range_over_the_budget_once_for_every_item",
        ),
    ),
    Mutation(
        "submissions-one-draw",
        "all senders of an iteration add the same noise",
        "§5",
        MODELS + "social/users.py",
        'noise.gaussian(self.rng, "submissions", scale[table.items], values.shape, single=True)',
        'noise.gaussian(self.rng, "submissions", scale[table.items], (1, values.shape[1]), single=True)',
        tests=(
            "tests/models/test_social_rigorous.py::"
            "test_noise_has_the_calibrated_deviation_in_the_sum_or_in_every_submission",
            "tests/models/test_social_noise.py::test_an_items_noise_adds_up_to_the_laplace_law_of_theorem_1",
        ),
        audit="privsr-rigorous",
    ),
    Mutation(
        "words-one-draw",
        "all occurrences of a word become the same word",
        "§6",
        MECHANISMS + "words.py",
        "_invert_cumulative(weights, rows, uniform[tokens])",
        "_invert_cumulative(weights, rows, uniform[tokens[:1]].repeat(len(tokens)))",
        tests=("tests/privacy/test_words.py::test_draws_follow_the_softmax",),
    ),
    Mutation(
        "resumed-noise-again",
        "a resumed run draws the noise of its first epochs again",
        "§11",
        MODELS + "training.py",
        'rest["noise"] = state',
        "pass",
        tests=("tests/models/test_contract.py::test_an_interrupted_run_ends_as_an_unbroken_one[dpae]",),
    ),
    Mutation(
        "key-saved",
        "the secret that noise is drawn by is in the saved model",
        "§11",
        MODELS + "sessions/dipsgnn.py",
        "self.key = noise.key(self.noise_rng)",
        'self.key = noise.key(self.noise_rng)\n        network.register_buffer("key", torch.tensor(self.key))',
        tests=(
            "tests/models/test_dipsgnn.py::test_a_loaded_model_repeats_the_release_of_the_saved_one_to_who_has_the_key",
        ),
    ),
    Mutation(
        "chosen-clip-finite",
        "a clipping bound chosen from gradients is accounted as a constant one",
        "§9",
        MECHANISMS + "user_sgd.py",
        "if self.clip_norm is None or not least:",
        "if not least:",
        tests=(
            "tests/privacy/test_user_sgd.py::test_a_constant_published_bound_is_accounted_and_a_chosen_one_is_not",
            "tests/models/test_userwise.py::TestLedger::test_a_chosen_bound_has_no_finite_epsilon",
        ),
    ),
    Mutation(
        "shared-metadata-finite",
        "priors made of all users' metadata leave the ledger finite",
        "§9",
        MODELS + "vae/userwise_ledger.py",
        'if metadata == "shared":',
        'if metadata == "shared" and not noisy:',
        tests=("tests/models/test_vae.py::test_the_ledger_says_what_protects_metadata",),
    ),
    Mutation(
        "budgets-unbounded",
        "a user's own budget may be above ε_max, which noise is made for",
        "§4",
        MECHANISMS + "user_sgd.py",
        "wrong = ~((budgets > 0) & (budgets <= epsilon_max))",
        "wrong = ~(budgets > 0)",
        tests=("tests/privacy/test_user_sgd.py::test_missing_and_impossible_budgets_are_refused",),
    ),
    Mutation(
        "broken-gradients-kept",
        "a gradient that is not finite enters the sum, where no factor makes it short",
        "§4",
        MECHANISMS + "ghost.py",
        "outers = [outer.without(broken) for outer in outers]",
        "outers = list(outers)",
        tests=("tests/privacy/test_ghost.py::test_a_gradient_that_is_not_finite_counts_nothing",),
    ),
    Mutation(
        "steps-without-users-silent",
        "a step that no user is in releases no noise, and so says that it is empty",
        "§4",
        MODELS + "ranking/dpae.py",
        "network, config, expected = self.network, self.config, self._plan.expected",
        "network, config, expected = self.network, self.config, self._plan.expected\n"
        "        if not len(users):\n            return 0.0",
        tests=("tests/models/test_dpae.py::test_a_step_without_any_user_still_makes_noise_of_the_stated_size",),
    ),
    Mutation(
        "audit-always-consistent",
        "an audit of too few samples is consistent with any claim",
        "§9",
        "tasks/privacy/audits/audit.py",
        "met and controls and min(controls) > claimed",
        "met",
        tests=("tests/privacy/test_audit.py::test_few_samples_are_inconclusive_about_a_large_budget",),
    ),
    Mutation(
        "perturbed-fits-share",
        "features of two entries of one data set have the same noise",
        "§11",
        "tasks/stages/perturb_features.py",
        "generator(seed, epsilon, options.data, name, content, secure=secure)",
        "generator(seed, epsilon)",
        tests=("tests/stages/test_perturb.py::test_two_entries_of_one_data_set_share_no_noise",),
    ),
    Mutation(
        "perturbed-networks-share",
        "both networks, and edges and texts, have the same noise",
        "§11",
        "tasks/stages/perturb_networks.py",
        "return generator(seed, epsilon, *where, network.name, network.digest, kind,",
        "return generator(seed, epsilon, *where,",
        tests=("tests/stages/test_perturb_networks.py::test_every_release_has_noise_of_its_own",),
    ),
    Mutation(
        "popularity-start-unused",
        "noise on the counts that biases start at is drawn and thrown away",
        "§1",
        MODELS + "vae/userwise.py",
        "counts = laplace.noisy_counts(counts, budget, config.contribution, self.noise_rng)",
        "laplace.noisy_counts(counts, budget, config.contribution, self.noise_rng)",
        tests=("tests/models/test_userwise.py::test_a_private_start_is_at_the_noisy_counts",),
        audit="dpvae-rigorous/popularity",
    ),
    Mutation(
        "count-noise-unused",
        "noise on the quantile's count is drawn and thrown away",
        "§11",
        MECHANISMS + "user_sgd.py",
        'count = float(noise.add_gaussian(rng, "count of small norms", exact, self.count_noise, sensitivity=0.5))',
        'count = float(exact + 0 * noise.add_gaussian(rng, "count of small norms", exact, self.count_noise, '
        "sensitivity=0.5))",
        tests=("tests/privacy/test_user_sgd.py::test_the_adaptive_bound_follows_a_count_with_all_of_its_noise",),
        audit="dpvae-rigorous/norms",
    ),
)

"""Bugs in what is released or drawn along with the noise: places, masks, losses, bounds, and all releases together."""

from __future__ import annotations

from functools import partial

from tests.privacy.planted.mutation import Mutation as AnyMutation

MODELS = "tasks/models/"
ALIKE = "test_a_tested_sequence_that_begins_like_training_shares_no_noise_with_it"
DPSGD_TESTS = "tests/models/test_session_dpsgd.py"
Mutation = partial(AnyMutation, written="with tests read")

MUTATIONS = (
    Mutation(
        "dpsgd-places",
        "who has no event has no place: probability, divisor and noise tell how many users have one",
        "§11",
        MODELS + "sessions/dpsgd.py",
        "multiplier = self.plan(data.n_users)",
        "multiplier = self.plan(len(self._sequences))",
        tests=(f"{DPSGD_TESTS}::test_a_user_taken_out_keeps_a_place",),
    ),
    Mutation(
        "dpsgd-masks-shared",
        "masks of a step come from one generator, so that a user's events move all others'",
        "§11",
        MODELS + "sessions/dpsgd.py",
        "drawn = OwnDraws(self._key, users, rows).random(tuple(values.shape))",
        "drawn = np.random.default_rng(self._key).random(tuple(values.shape))",
        tests=(f"{DPSGD_TESTS}::test_a_user_moves_nobody_elses_gradient_where_values_are_dropped",),
    ),
    Mutation(
        "own-draws-by-place",
        "users draw by their place in the step, which others decide, not by who they are",
        "§11",
        MODELS + "own_draws.py",
        "np.random.default_rng([*key, user, 1]) for user in users.tolist()",
        "np.random.default_rng([*key, place, 1]) for place in range(len(users))",
        tests=(
            f"{DPSGD_TESTS}::test_a_user_moves_nobody_elses_gradient_where_values_are_dropped",
            "tests/models/test_userwise.py::test_who_is_in_a_rigorous_step_changes_nobody_elses_gradient",
        ),
    ),
    Mutation(
        "userwise-draws-shared",
        "codes and examples of a step come from one generator, so that who is sampled moves all others'",
        "§11",
        MODELS + "vae/userwise.py",
        "return OwnDraws([int(self._rng.integers(2**63))], users, self.config.examples)",
        "return self._rng",
        tests=("tests/models/test_userwise.py::test_who_is_in_a_rigorous_step_changes_nobody_elses_gradient",),
    ),
    Mutation(
        "privsr-loss-of-all",
        "the published loss is of sensitive ratings, too",
        "§11",
        MODELS + "social/users.py",
        "if shown is None:",
        "if shown is None or len(self.sensitive):",
        tests=("tests/models/test_social_rigorous.py::test_the_loss_that_is_published_tells_no_sensitive_rating",),
    ),
    Mutation(
        "features-bounds-free",
        "bounds that are fitted to the data are released, and the line of all that is released stays finite",
        "§9",
        "tasks/privacy/mechanisms/multidimensional.py",
        '"accounted_epsilon": None,',
        '"accounted_epsilon": entry.accounted_epsilon,',
        tests=(
            "tests/privacy/test_multidimensional.py"
            "::test_bounds_that_are_fitted_leave_no_finite_epsilon_but_given_them",
        ),
    ),
    Mutation(
        "unused-outright",
        "an ε of 0 names no condition, though configuration and epoch were chosen on validation data",
        "§9",
        MODELS + "social/ledgers.py",
        'because("nothing-sensitive"),\n        given=GIVEN_EPOCH,',
        'because("nothing-sensitive"),',
        tests=("tests/privacy/test_gaps.py::test_every_finite_epsilon_names_what_it_does_not_cover[mf-ratings]",),
    ),
    Mutation(
        "results-hash-own-data",
        "results have a hash of somebody's own data, which confirms any guess at them",
        "§9",
        "tasks/stages/collect.py",
        "return {} if own else {data: digest(PROCESSED / data)}",
        "return {data: digest(PROCESSED / data)}",
        tests=("tests/stages/test_collect_fingerprints.py::test_results_have_no_hash_of_somebodys_own_data",),
    ),
    Mutation(
        "counts-unsaid",
        "no gap of perturbed features names the counts and hashes that are published with them",
        "§9",
        "tasks/privacy/mechanisms/multidimensional.py",
        "RECORDED,\n            SEED_OF_RELEASE,",
        "SEED_OF_RELEASE,",
        tests=("tests/privacy/test_gaps.py::test_counts_and_hashes_are_named_of_every_release",),
    ),
    Mutation(
        "words-fitted-thirds",
        "thirds of a number's range are read off the data, so that one user moves the metadata of all others",
        "§4",
        "tasks/datasets/words.py",
        'if feature.bounds == "fitted":',
        "if False:",
        tests=(
            "tests/datasets/test_words.py::test_a_number_whose_bounds_are_the_datas_own_is_refused_unless_it_is_an_age",
        ),
    ),
    Mutation(
        "features-categories-free",
        "categories that are read off the data are released, and the line of all that is released stays finite",
        "§9",
        "tasks/privacy/mechanisms/multidimensional.py",
        '*(["categories"] if classes else [])',
        "",
        tests=(
            "tests/privacy/test_multidimensional.py"
            "::test_categories_that_are_read_off_the_data_leave_no_finite_epsilon_but_given_them",
        ),
    ),
    Mutation(
        "features-categories-unmarked",
        "categories that are read off the data pass for public ones",
        "§9",
        "tasks/datasets/custom.py",
        'bounds="fitted" if given.kind == "categorical" and given.categories is None else "public",',
        "",
        tests=("tests/datasets/test_custom.py::test_categories_that_are_not_listed_are_those_found",),
    ),
    Mutation(
        "features-noise-by-name",
        "noise on features is keyed by the data's name, so that two versions of the data share it",
        "§11",
        "tasks/stages/perturb_features.py",
        "generator(seed, epsilon, options.data, name, content, secure=secure)",
        "generator(seed, epsilon, options.data, name, secure=secure)",
        tests=("tests/stages/test_perturb.py::test_two_versions_of_one_data_set_share_no_noise",),
    ),
    Mutation(
        "networks-noise-by-features",
        "noise on a network is keyed by its features alone, so that versions with other friends or texts share it",
        "§11",
        "tasks/stages/perturb_networks.py",
        "perturb_features.content_digest(self.matrix, self.links, *texts)",
        "perturb_features.content_digest(self.matrix)",
        tests=("tests/stages/test_perturb_networks.py::test_noise_follows_from_all_that_a_network_holds",),
    ),
    Mutation(
        "heads-one-part",
        "a sequence that is asked about has the noise of the training sequence that begins alike",
        "§3",
        "tasks/privacy/keyed.py",
        "return mix(*parts, np.ones(1, np.int64)) if tested else mix(*parts)",
        "return mix(*parts)",
        tests=(f"tests/models/test_released.py::{ALIKE}",),
        audit="dipsgnn-released",
    ),
    Mutation(
        "prefixes-one-part",
        "aggregates of a tested sequence have the noise of the training sequence that begins alike",
        "§3",
        MODELS + "sessions/dipsgnn.py",
        "head_ids(sequences, asked.draws, tested=asked.tested)",
        "head_ids(sequences, asked.draws, tested=False)",
        tests=(f"tests/models/test_dipsgnn_streams.py::{ALIKE}",),
        audit="dipsgnn-cached",
    ),
    Mutation(
        "matrices-one-part",
        "matrices of a tested sequence have the noise of the training sequence that begins alike",
        "§3",
        MODELS + "sessions/edgerand.py",
        "newest = prefixes(asked)[np.sort(came)]",
        "newest = prefixes(Queries(sequences, asked.graphs, asked.draws))[np.sort(came)]",
        tests=(f"tests/models/test_edgerand.py::{ALIKE}",),
        audit="edgerand",
    ),
    Mutation(
        "scores-noise-of-training",
        "lists are computed as of a sequence that was trained on",
        "§3",
        MODELS + "sessions/gated.py",
        "self.logits(batch, tested=True)",
        "self.logits(batch)",
        tests=(
            "tests/models/test_dipsgnn_streams.py"
            "::test_what_is_scored_is_asked_for_as_tested_and_what_is_learnt_from_is_not",
        ),
    ),
    Mutation(
        "dpsgd-infinite",
        "DPSGD sums gradients that are not finite, which no factor makes short",
        "§3",
        "tasks/privacy/accounting/per_record.py",
        "if broken.any():",
        "if broken.all():",
        tests=("tests/models/test_session_dpsgd.py::test_a_gradient_that_is_not_finite_counts_nothing",),
    ),
    Mutation(
        "dpae-infinite",
        "DPAE sums gradients that are not finite, which no factor makes short",
        "§2",
        MODELS + "ranking/dpae.py",
        "if not broken.any():",
        "if not broken.all():",
        tests=("tests/models/test_dpae.py::test_a_gradient_that_is_not_finite_counts_nothing",),
    ),
    Mutation(
        "saved-in-one-file",
        "a saved model has users' vectors and codes in the file that is released",
        "§11",
        MODELS + "base.py",
        "tensors.pop(name) for name in self.own_tensors if name in tensors",
        "tensors[name] for name in self.own_tensors if name in tensors",
        tests=(
            "tests/models/test_saved_files.py::test_what_is_for_each_users_own_eyes_is_in_no_file_that_is_released",
        ),
    ),
    Mutation(
        "together-endless-unsaid",
        "private releases without a finite ε are not counted with the others",
        "§9",
        "tasks/results/composition.py",
        "_left_out(unbound, {release.source for release in counted}),",
        "(),",
        tests=(
            "tests/pages/test_composition.py"
            "::test_private_releases_without_a_bound_are_counted_next_to_those_that_have_one",
        ),
    ),
    Mutation(
        "together-settings-once",
        "what every setting of a network releases again at an equal budget counts once",
        "§9",
        "tasks/results/composition.py",
        "(read, line.network, anew)",
        "(read, line.network)",
        tests=(
            "tests/pages/test_composition.py::test_each_setting_of_a_budget_of_perturbed_data_releases_a_network_anew",
        ),
    ),
    Mutation(
        "together-one-step",
        "a release for whole users counts once, not twice, towards one of their interactions",
        "§9",
        "tasks/privacy/units.py",
        '{"user": 2, "user-with-metadata": 2}',
        '{"user": 1, "user-with-metadata": 1}',
        tests=(
            "tests/privacy/test_units.py::test_a_guarantee_counts_in_as_many_steps_as_neighbours_of_the_unit_are_apart",
        ),
    ),
)

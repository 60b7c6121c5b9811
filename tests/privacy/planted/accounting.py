"""Bugs in what is counted and asked: accountant, noise streams, audits, splits (methods.md §8, §9, §11)."""

from __future__ import annotations

from tests.privacy.planted.mutation import Mutation

ACCOUNT, AUDIT = "tasks/privacy/accounting/account.py", "tasks/privacy/audits/audit.py"
NOISE, BASE = "tasks/privacy/noise.py", "tasks/models/base.py"
TESTS, AUDITED = "tests/privacy/test_accounting.py::", "tests/privacy/test_audit.py::"
PURE, GAUSSIAN = TESTS + "test_pure_budgets_add_up", TESTS + "test_gaussian_noise_matches_the_analytic_formula"
SAMPLED = TESTS + "test_sampling_is_accounted_a_little_tighter_than_by_renyi_divergence"
NO_OTHER = ("tests/models/test_noise_streams.py::test_noise_is_shared_with_no_other_fit[dp-popularity]",)
STREAM = ("tests/privacy/test_noise.py::test_every_release_has_a_stream_of_its_own",)
BOUNDS = AUDITED + "test_bounds_are_clopper_pearson"
SPLITS = "tests/evaluation/test_splits.py::"
PRECISION = "precision = math.fsum(count * value * value for count, value in inverse)"

ACCOUNTANT = tuple(
    Mutation(name, wrong, "§9", ACCOUNT, old, new, tests, audit)
    for name, wrong, old, new, tests, audit in (
        ("account-count", "pure budgets of repeated releases are added once",
         "return math.fsum(event.count * _pure_epsilon(event) for event in events)",
         "return math.fsum(_pure_epsilon(event) for event in events)", (PURE,), ""),
        ("account-sensitivity", "discrete Laplace noise is accounted for a sensitivity of 1",
         'return parameters["noise_parameter"] * parameters["sensitivity"]', 'return parameters["noise_parameter"]',
         (PURE, "tests/models/test_contract.py::test_noisy_popularity_accounts_for_its_whole_budget"), "dp-popularity"),
        ("account-gaussian-count", "Gaussian releases compose as if each kind happened once",
         PRECISION, PRECISION.replace("count * ", ""), (GAUSSIAN,), "dipsgnn-rigorous"),
        ("account-largest", "of all Gaussian releases the most revealing one counts",
         PRECISION, "precision = max((count * value * value for count, value in inverse), default=0.0)",
         (TESTS + "test_composition_is_between_one_release_and_the_sum",
          "tests/models/test_dpals.py::test_the_accounted_total_meets_the_budget"), ""),
        ("account-sampled-once", "sampled steps are composed once",
         "self_compose(count)\n    composed", "self_compose(1)\n    composed", (SAMPLED,), ""),
        ("account-amplified-twice", "what sampling gains is taken twice",
         "sampling_prob=probability,", "sampling_prob=probability**2,", (SAMPLED,), "dpae/sampled"),
    )
)  # fmt: skip

RENYI = tuple(
    Mutation(name, wrong, "§9", ACCOUNT, old, new, (TESTS + test,), written="with tests read")
    for name, wrong, old, new, test in (
        ("account-renyi-once", "Rényi divergences of repeated releases are added once",
         "total += sum(event.count * _renyi(event, order) for event in events)",
         "total += sum(_renyi(event, order) for event in events)",
         "test_sampled_steps_have_a_finite_epsilon_at_any_delta"),
        ("account-renyi-cancels", "what little sampling leaves is lost in rounding",
         "np.logaddexp(0, np.logaddexp(logsumexp(logs), -700))", "np.log(1 + np.exp(logsumexp(logs)))",
         "test_renyi_divergence_of_a_sampled_release_is_exact"),
        ("account-fft", "rounding in Fourier transforms is taken for less privacy loss",
         "FFT_ERROR = 1e-15", "FFT_ERROR = 0.0",
         "test_rounding_in_fourier_transforms_takes_nothing_off_epsilon"),
    )
)  # fmt: skip

OTHERS = tuple(
    Mutation(name, wrong, section, file, old, new, tests, audit)
    for name, wrong, section, file, old, new, tests, audit in (
        ("account-halved", "every finite ε is halved", "§9", ACCOUNT,
         'return Spent(epsilon, delta, "")', 'return Spent(epsilon / 2, delta, "")', (PURE, GAUSSIAN), "dpmf-rigorous"),
        ("account-unknown", "releases without protection are passed over", "§9", ACCOUNT,
         'if reason := next(filter(None, map(_refusal, events)), ""):',
         'events = [event for event in events if event.kind != "non-private"]\n'
         '    if reason := next(filter(None, map(_refusal, events)), ""):',
         (TESTS + "test_what_cannot_be_accounted_for_is_refused_with_its_reason",), ""),
        ("stream-no-names", "noise does not depend on data, experiment, setting or configuration", "§11", NOISE,
         "child.generate_state(8).tobytes() + _digest(names)", "child.generate_state(8).tobytes()", NO_OTHER, ""),
        ("stream-no-seed", "noise does not depend on the seed", "§11", NOISE,
         "child.generate_state(8).tobytes() + _digest(names)", "_digest(names)", NO_OTHER, ""),
        ("stream-no-data", "neighbouring data sets have the same noise", "§11", BASE,
         ", data.digest, *self.named)", ", *self.named)", NO_OTHER, ""),
        ("stream-no-config", "all budgets of a sweep have the same noise", "§11", BASE,
         "self.noise_key, self.config.model_dump_json(by_alias=True), ", "self.noise_key, ", NO_OTHER, ""),
        ("stream-no-setting", "data set, experiment and setting are not in the key", "§11", BASE,
         "data.digest, *self.named)", "data.digest)", NO_OTHER, ""),
        ("generator-truncated", "budgets that differ behind the decimal point have the same noise", "§11", NOISE,
         "entropy = [seed, int(np.float64(epsilon).view(np.uint64))]", "entropy = [seed, int(epsilon)]", STREAM, ""),
        ("generator-no-release", "kinds of data of one seed and budget have the same noise", "§11", NOISE,
         'entropy.append(int.from_bytes(_digest(release), "little"))', "entropy.append(0)", STREAM, ""),
        ("keyed-no-release", "releases of one key have the same noise whatever they are called", "§11", NOISE,
         "return keyed.digest(release.encode())", "return keyed.digest(b'')",
         ("tests/privacy/test_noise.py::test_noise_by_key_is_a_function_of_release_key_and_id",), ""),
        ("audit-one-half", "the event is judged on the samples that chose it", "§9", AUDIT,
         "for part in (slice(0, half), slice(half, 2 * half))", "for part in (slice(0, half), slice(0, half))",
         (AUDITED + "test_what_chose_the_event_does_not_judge_it", AUDITED + "test_equal_inputs_give_no_bound"), ""),
        ("audit-error", "both ends of the interval have the whole error", "§9", AUDIT,
         "error = (1 - confidence) / 2", "error = 1 - confidence", (BOUNDS,), ""),
        ("audit-delta", "δ is left out of the bound", "§9", AUDIT,
         "return np.log(np.maximum(low - delta, 0.0)) - np.log(high)",
         "return np.log(np.maximum(low, 0.0)) - np.log(high)",
         (BOUNDS, AUDITED + "test_gaussian_noise_is_within_its_budget_at_its_delta"), ""),
        ("audit-point-estimate", "the lower end of the first proportion is its estimate", "§9", AUDIT,
         "low = np.where(more > 0, betaincinv(np.maximum(more, 1), n - more + 1, error), 0.0)", "low = more / n",
         (BOUNDS,), ""),
        ("one-run-delta", "the audit by one run forgets the correction for δ", "§9", "tasks/privacy/audits/one_run.py",
         "if delta == 0 or correct == 0:", "if delta < 1 or correct == 0:",
         ("tests/privacy/test_one_run.py::test_the_p_value_is_what_a_slow_sum_gives",
          "tests/privacy/test_one_run.py::test_ignoring_delta_would_accuse"), ""),
        ("test-in-training", "test interactions of a user are among those trained on", "§8",
         "tasks/evaluation/splits.py", "held[position < np.repeat(n_test, count)] = TEST\n\n    result",
         "held[position < np.repeat(n_test // 2, count)] = TEST\n\n    result",
         (SPLITS + "test_sizes_are_the_rounded_shares_and_every_user_keeps_training_data",), ""),
    )
)  # fmt: skip

MUTATIONS = (*ACCOUNTANT, *RENYI, *OTHERS)

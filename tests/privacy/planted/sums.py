"""Bugs in a private release of interactions (`tasks/release/`)."""

from __future__ import annotations

from tests.privacy.planted.mutation import Mutation

MAKING, SUMS = "tasks/release/making.py", "tasks/release/sums.py"
TESTS = "tests/release/"
REFUTED = TESTS + "test_audit.py::test_the_code_that_is_shipped_is_not_refuted"
MOVES = TESTS + "test_sums.py::test_a_user_more_moves_both_sums_by_no_more_than_the_sensitivity"
SPENT = TESTS + "test_making.py::test_the_ledger_composes_to_the_budget"
DRAWN = "return noise.add_gaussian(self.rng, statistic, value"
ROOT = "math.isqrt((most << 2 * BITS) // size)"

MUTATIONS = tuple(
    Mutation(f"release-{name}", wrong, section, file, old, new, (test,), audit, written="with tests read")
    for name, wrong, section, file, old, new, test, audit in (
        ("pairs-exact", "pairs are released without noise", "§1", MAKING,
         DRAWN, DRAWN.replace("return ", 'return value if statistic == "pairs" else '), REFUTED, "gram-svd"),
        ("counts-exact", "counts are released without noise", "§1", MAKING,
         DRAWN, DRAWN.replace("return ", 'return value if statistic == "counts" else '), REFUTED, "gram-svd"),
        ("twice-epsilon", "noise is that of 2ε", "§9", MAKING,
         "get_sigma_gaussian(self.epsilon, self.delta)", "get_sigma_gaussian(2 * self.epsilon, self.delta)", SPENT, ""),
        ("pairs-unweighted", "users with many items in the head have full weight", "§1", SUMS,
         "weights, total = _weights(n * (n - 1), m * (m - 1)),", "weights, total = np.ones(len(n)),", MOVES,
         "gram-svd"),
        ("counts-unweighted", "users with many items have full weight in counts", "§1", SUMS,
         "rows.T @ _weights(_lengths(rows), m)", "rows.T @ np.ones(rows.shape[0])", MOVES, ""),
        ("fourth-root", "weights are the roots of what they must be", "§1", SUMS,
         ROOT, "math.isqrt(math.isqrt((most << 4 * BITS) // size))", MOVES, ""),
        ("head-exact", "exact counts choose the head", "§1", MAKING,
         "np.argsort(-counts, ", "np.argsort(-exact, ",
         TESTS + "test_making.py::test_the_head_is_chosen_by_noisy_counts", ""),
        ("users-exact", "the exact number of users sets the parameters", "§9", MAKING,
         "return max(float(n[0]), FEWEST_USERS)", "return max(float(rows.shape[0]), FEWEST_USERS) + 0 * float(n[0])",
         TESTS + "test_making.py::test_the_number_of_users_is_noisy_unless_it_is_public", ""),
        ("noise-again", "all blocks have the same noise", "§11", MAKING,
         DRAWN, DRAWN.replace("self.rng", "np.random.default_rng(1)"),
         TESTS + "test_making.py::test_every_block_is_drawn_with_the_scale_that_is_recorded", ""),
        ("utility-of-one", "the utility of two models is paid for as that of one", "§9", "tasks/release/utility.py",
         "np.sqrt(len(models) + COUNTED**2)", "np.sqrt(1 + COUNTED**2)",
         TESTS + "test_making.py::test_no_user_moves_the_estimate_by_more_than_is_paid_for", ""),
        ("repeated", "a repeated pair counts again", "§1", "tasks/release/building.py",
         "keys = keys[np.diff(keys, prepend=-1) > 0]", "keys = keys.copy()",
         TESTS + "test_command.py::test_ids_are_text_in_the_order_of_the_catalogue_and_others_items_are_left_out", ""),
        ("users-by-file", "a user of two files is two users", "§1", "tasks/external/coding.py",
         "pieces.append((users.code(rows[user])", "pieces.append((users.code(rows[user] + file.name)",
         TESTS + "test_command.py::test_a_table_in_parts_is_one_table", ""),
    )
)  # fmt: skip

"""PrivSR (Meng et al., AAAI 2018): what its report shows, and what is known of its data.

The paper prints Table 1 alone as numbers. Its Figures 3 to 5 are pictures without numbers, so none of its results can
be set beside ours; `tasks.papers.privsr.claims` tests what it says of them. "PrivSR" and "DPMF" of Figures 3 and 4 have
a budget of 0.1 and of 0.05 each, β = 0.1 (ε_s = 1.1 ε), and x percent of the ratings are sensitive.
"""

from __future__ import annotations

from tasks.reporting.core.published import BudgetSweep, Figure, Mode, Paper, Quality, Words
from tasks.reporting.core.results import BASE

EPSILON, SMALLER = 0.1, 0.05
"""Budgets of Figures 3 and 4."""
SENSITIVE_BUDGETS = {EPSILON: 0.11, SMALLER: 0.055}
"""PrivSR's budgets there -> ε_s = (1 + β) ε, what they come to for sensitive ratings at β = 0.1."""
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Their x."""
VALUES = (0.01, 0.05, 0.1, 0.5, 1.0)
"""ε of Figure 5a, and β of Figure 5b."""
FIXED_BETA, FIXED_EPSILON = 1.0, 0.01
"""What stays fixed in each of them."""
SHARE = "sensitive_share"
"""The key of x."""
MAE = "mae"
ATTACK = "reconstruction/published/mae"
"""The paper's own attack, its Eq. 10."""

_METHODS = {"PrivSR": "privsr", "DPMF": "dpmf", "MF": "mf", "SoReg": "soreg"}
_ALL = ("PrivSR", "DPMF", "MF", "SoReg")
_UTILITY = Quality(MAE, "MAE", "", "test fold", k=0, lower=True)

PRIVSR = Paper(
    key="privsr",
    name="PrivSR",
    reference=(
        "X. Meng, S. Wang, K. Shu, J. Li, B. Chen, H. Liu, Y. Zhang: Personalized Privacy-Preserving Social "
        "Recommendation. AAAI 2018, pages 3796-3803."
    ),
    methods=_METHODS,
    protecting=("PrivSR", "DPMF"),
    tables=(),
    figures=(
        Figure(
            key="figure3",
            name="Figure 3",
            title="Error by share of sensitive ratings",
            method="MF, SoReg, DPMF and PrivSR",
            parameters=("x",),
            methods=_ALL,
            key_swept=SHARE,
            values=SHARES,
            note=(
                "MF and SoReg get no sensitive ratings. Lower is better. The levels of means without vectors are ours."
            ),
        ),
        Figure(
            key="figure4",
            name="Figure 4",
            title="Error of the paper's attack by share of sensitive ratings",
            method="MF, SoReg, DPMF and PrivSR",
            parameters=("x",),
            methods=_ALL,
            key_swept=SHARE,
            values=SHARES,
            note=(
                "The attacker fits users' vectors to item vectors and published ratings (Eq. 10). Higher is safer, but "
                "above the control there is nothing left to protect: published ratings alone tell as much."
            ),
        ),
        Figure(
            key="figure5",
            name="Figure 5",
            title="Error and attack by ε and by β",
            method="PrivSR",
            parameters=("epsilon", "beta"),
            methods=("PrivSR",),
            values=VALUES,
            note=(
                "(a): by ε at β = 1, (b): by β at ε = 0.01; 10 % of the ratings are sensitive. A larger β gives "
                "sensitive ratings more of the budget and the others less."
            ),
        ),
    ),
    qualities=(_UTILITY,),
    utility=_UTILITY,
    headline_k=0,
    open=("nonoise",),
    emphasis=("privsr", "rigorous", "rigorous-local", "dpmf", "mf", "soreg", "nonoise"),
    validation="MAE",
    modes=(
        Mode("as published", "privsr", BASE),
        Mode("rigorous", "rigorous", BASE),
        Mode("rigorous, towards the recommender", "rigorous-local", BASE),
        Mode("without noise", "nonoise", BASE),
    ),
    budget_sweeps=(
        BudgetSweep("privsr", "epsilon"),
        BudgetSweep("rigorous", "epsilon"),
        BudgetSweep("rigorous-local", "epsilon"),
        BudgetSweep("dpmf", "epsilon"),
        BudgetSweep("dp-bias", "epsilon"),
    ),
    levels=("bias", "mf", "nonoise"),
    statistics={
        "ciao": (
            "Which users and products the paper left out is not published; with three raters per product the ratings "
            "come close, the network of trust does not."
        ),
        "epinions": (
            "Which users and products the paper left out is not published, and no filter of ours comes near its counts."
        ),
    },
    counted="Nothing printed stands beside generated data.",
    words=Words(
        quality="Test error",
        participles=("predicting better", "predicting worse"),
        yardstick="noisy means of users and items",
        yardsticks="the means of ratings",
        direction="Down is better prediction",
        verdict="A system above a line of means serves its users worse than means that learn no vectors.",
        worth="where it predicts better than noisy means of the same accounted ε",
        run="fold",
    ),
    overlap=0.25,  # of five folds: one is tested, four are learnt from
    private_yardstick="dp-bias",
    floor=("bias", "dp-bias"),
    measured=(
        (
            "Test error by kind",
            (
                Quality("mae/sensitive", "sensitive", "", "", k=0, lower=True),
                Quality("mae/public", "published", "", "", k=0, lower=True),
                Quality("mae/uncut", "not cut off", "", "", k=0, lower=True),
            ),
        ),
        (
            "Users' communication per iteration",
            (
                Quality("communication/messages", "messages", "", "", digits=0, k=0, lower=True),
                Quality("communication/bytes", "bytes", "", "", digits=0, k=0, lower=True),
            ),
        ),
        ("Training", (Quality("iterations", "iterations", "", "", digits=0, k=0),)),
    ),
    caveats={
        "": (
            "The five runs of a system are the folds of one cross-validation. Any two of them share three quarters of "
            "what they learn from, so they are not independent: tests and intervals are corrected for it, and with "
            "five folds only differences that are large beside their spread are found.",
        ),
        "epinions": (
            "The trust relations of this release of Epinions do not belong to the users of its ratings: those "
            "who trust one another have no more products in common than strangers. Whatever uses them here, SoReg and "
            "PrivSR, is fed random links, and nothing on these data speaks about social recommendation.",
        ),
    },
    bases={SHARE: 0.1},
    unprotected="nonoise",
)

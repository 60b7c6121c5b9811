"""What is known of what PrivSR says of orders and our numbers contradict; its figures print no number."""

from __future__ import annotations

from tasks.papers.privsr.claims import ERROR
from tasks.papers.privsr.published import EPSILON, SHARE, SMALLER
from tasks.reporting.core.claim_specs import Measure, Order, Side
from tasks.reporting.core.differences import Reason

OPEN = "docs/choices-privsr.md#what-privsr-leaves-open"
FINDINGS = "docs/choices-privsr.md#what-the-numbers-say-about-privsr-and-why"
_MF = Side("MF")
_ITERATIONS = Measure("iterations", "iterations", (0,), "lower", digits=0)
_SMALLER, _DPMF = (
    Side(method, at=((SHARE, 0.1), ("epsilon", epsilon)), version=f"ε = {epsilon:g}")
    for method, epsilon in (("PrivSR", SMALLER), ("DPMF", EPSILON))
)

REASONS = (
    Reason(
        name="noise costs more than sensitive ratings tell",
        kind="not decided",
        evidence=(
            "A smaller step averages more noise away, and so do more iterations; of these the paper says “while not "
            "converge”. No run tells whether its noise was smaller or its training longer than ours."
        ),
        sources=(OPEN, FINDINGS),
        claims=("In general PrivSR (ε = 0.1) outperforms MF", "In general PrivSR (ε = 0.1) outperforms SoReg",
                "Without sensitive ratings PrivSR (ε = 0.1) performs almost as good"),
        measured=(
            Order("figure3", "At a third of the printed step PrivSR is better than MF",
                  ((Side("PrivSR", setting="learning_rate=3e-05", version="γ = 0.00003"), _MF),), (ERROR,)),
            Order("figure3", "At ten times the budget and β = 1 PrivSR is better than MF",
                  ((Side("PrivSR", at=(("epsilon", 1.0), ("beta", 1.0)), version="ε = 1, β = 1"), _MF),), (ERROR,)),
            Order("figure3", "Without noise PrivSR is better than MF", ((Side("nonoise"), _MF),), (ERROR,)),
        ),
    ),
    Reason(
        name="noise ends training",
        kind="not decided",
        evidence=(
            "Validation keeps the best epoch and ends after five without a new best. Where any rating is sensitive "
            "that is one of the first four epochs of PrivSR at ε of 0.05 or less, and one of the first seven of DPMF "
            "at 0.1: beginnings are compared. The paper names no criterion of convergence, and no run of ours ends "
            "otherwise."
        ),
        sources=(OPEN, FINDINGS),
        claims=("PrivSR with ε = 0.05 is better than DPMF", "At fixed ε recommendation stays the same whatever β"),
        measured=(
            Order("figure3", "PrivSR at ε = 0.05 ends before DPMF at 0.1", ((_SMALLER, _DPMF),), (_ITERATIONS,)),
        ),
    ),
    Reason(
        name="an attack that loses to published ratings",
        kind="not decided",
        evidence=(
            "The paper's attack errs more on every system, with noise and without, than published ratings alone "
            "allow, so that it tells how users are fitted rather than who is protected. The paper has no such control."
        ),
        sources=(FINDINGS,),
        claims=("With a similar budget PrivSR and DPMF protect alike", "Noise helps against the paper's own attack"),
    ),
)  # fmt: skip
"""The one that comes first covers a claim first."""

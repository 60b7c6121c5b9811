"""What PrivSR's paper says in its evaluation that our numbers can test.

Source: Meng et al., AAAI 2018, "Experimental Evaluation". Error is MAE on the test fold (lower is better), privacy the
error of an attack on sensitive ratings (higher is safer): the paper's own, on published item vectors, and where a claim
does not name it, that of a recommender who takes all submissions together, too. What the paper says without a number is
read so: "almost as good", "stays the same" and "retaining" as within 1 %, 1 % and 5 % of the other error, "similar"
privacy as within 5 %. The "same privacy budgets for sensitive ratings" are those of single ratings: PrivSR's ε_s = (1 +
β) ε and DPMF's ε. Its t-test has plain folds; ours is corrected for their overlap. A method that loses to a constant
can be within 5 % of itself: "good effectiveness" is read as below the error of the global mean, too, and where a claim
sets PrivSR beside itself or has it at a small budget, its evidence says how often PrivSR is above that mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

from tasks.papers.privsr.published import (
    ATTACK,
    EPSILON,
    FIXED_BETA,
    FIXED_EPSILON,
    MAE,
    SENSITIVE_BUDGETS,
    SHARE,
    SHARES,
    SMALLER,
    VALUES,
)
from tasks.reporting.core.claim_specs import Claim, Measure, Order, Readings, Side, Spec, Trend
from tasks.reporting.core.results import Results

ERROR = Measure("MAE", MAE, (0,), "lower")
PRIVACY = Measure("the attacker's MAE", ATTACK, (0,), "higher")
JOINT = "reconstruction/joint/mae"
ATTACKS = {
    "by the paper's own attack": PRIVACY,
    "by all that users submit, taken together": Measure("the recommender's MAE", JOINT, (0,), "higher"),
}
"""The paper's recommender listens, and its attack does not: claims of protection are judged by both."""
ALIKE, SIMILAR = 1.01, 0.95
RETAINED = 1.05
"""Margins of what the paper says without a number; below 1 where higher is better."""
FLOOR = "global-mean"
"""Label of the constant that whatever learns anything is below."""
SENSITIVE = tuple(share for share in SHARES if share > 0)


def claims(results: Results, _: int) -> tuple[list[Spec | Readings], list[Claim]]:
    """All claims; none is judged without a test."""
    del results
    return [*_recommendation(), *_privacy(), *_parameters()], []


def _side(method: str, share: float, epsilon: float = 0.0) -> Side:
    """A method at x, and at a budget where it has one."""
    at = {SHARE: share} | ({"epsilon": epsilon} if epsilon else {})
    version = f"ε = {epsilon:g}, x = {100 * share:g} %" if epsilon else f"x = {100 * share:g} %"
    return Side(method, at=tuple(at.items()), version=version)


def _our_side(share: float, epsilon: float = EPSILON) -> Side:
    return _side("PrivSR", share, epsilon)


def _recommendation() -> list[Spec]:
    others = {"MF": 0.0, "SoReg": 0.0, "DPMF": EPSILON}
    return [
        Order("figure3", "Without sensitive ratings PrivSR (ε = 0.1) performs almost as good as SoReg (read as: its "
              "MAE is at most 1 % higher)", ((_our_side(0.0), _side("SoReg", 0.0)),), (replace(ERROR, factor=ALIKE),)),
        *(
            Order("figure3", f"In general PrivSR (ε = 0.1) outperforms {other}, whatever share of ratings is sensitive",
                  tuple((_our_side(share), _side(other, share, epsilon)) for share in SENSITIVE), (ERROR,),
                  most=True, apart=True)
            for other, epsilon in others.items()
        ),
        Order("figure3", "PrivSR with ε = 0.05 is better than DPMF with ε = 0.1 in most cases",
              tuple((_our_side(share, SMALLER), _side("DPMF", share, EPSILON)) for share in SHARES), (ERROR,),
              most=True, apart=True, floor=FLOOR),
    ]  # fmt: skip


def _privacy() -> list[Spec | Readings]:
    budgets = [(_our_side(share, epsilon), _side("DPMF", share, epsilon))
               for share in SENSITIVE for epsilon in (EPSILON, SMALLER)]  # fmt: skip
    alike = tuple(pair for both in budgets for pair in (both, both[::-1]))
    smaller = tuple((_our_side(share, SMALLER), _our_side(share)) for share in SENSITIVE)
    return [
        *(
            Order("figure4", f"Noise helps against the paper's own attack: it errs more on {method} (ε = 0.1) than on "
                  f"{other}",
                  tuple((_side(method, share, EPSILON), _side(other, share)) for share in SENSITIVE), (PRIVACY,))
            for method in ("PrivSR", "DPMF") for other in ("MF", "SoReg")
        ),
        _protected("figure4", "With a similar budget PrivSR and DPMF protect alike (read as: the attacker's errors are "
                   "within 5 % of each other)",
                   lambda at, said, by: Order(at, said, alike, (replace(by, factor=SIMILAR),))),
        Order("figure4", "At the same budget for sensitive ratings PrivSR is significantly better than DPMF (read as: "
              "DPMF has ε_s = 1.1 ε)",
              tuple((_our_side(share, epsilon), _side("DPMF", share, same))
                    for share in SENSITIVE for epsilon, same in SENSITIVE_BUDGETS.items()), (ERROR,), floor=FLOOR),
        _protected("figure4", "A lower budget of PrivSR significantly increases protection (ε = 0.05 against 0.1)",
                   lambda at, said, by: Order(at, said, smaller, (by,))),
        Readings("figure4", "It retains a good effectiveness", {
            "its MAE is at most 5 % above that of ε = 0.1": Order(
                "figure4", "It retains a good effectiveness", smaller, (replace(ERROR, factor=RETAINED),), floor=FLOOR),
            "its MAE is below that of the global mean": Order(
                "figure4", "It retains a good effectiveness",
                tuple((_our_side(share, SMALLER), _side(FLOOR, share)) for share in SENSITIVE), (ERROR,)),
        }),
        _especially("figure4", "That holds especially where few ratings are sensitive"),
    ]  # fmt: skip


def _especially(artefact: str, claim: str) -> Readings:
    """What a lower budget costs, or the error itself, rises with the share of sensitive ratings."""
    at, minus = (("epsilon", SMALLER),), (("epsilon", EPSILON),)

    def rising(values: tuple[float, ...], minus: tuple[tuple[str, float], ...] = ()) -> Trend:
        return Trend(artefact, claim, SHARE, ("PrivSR",), (ERROR,), rises=True, values=values, at=at, minus=minus)

    return Readings(artefact, claim, {
        "what the lower budget costs rises from x = 0 on": rising(SHARES, minus),
        "what it costs rises among the shares above 0": rising(SENSITIVE, minus),
        "the error at the lower budget rises among the shares above 0": rising(SENSITIVE),
    })  # fmt: skip


def _parameters() -> list[Spec | Readings]:
    beta, epsilon = (("beta", FIXED_BETA),), (("epsilon", FIXED_EPSILON),)
    at = {value: Side("PrivSR", at=(*epsilon, ("beta", value)), version=f"β = {value:g}") for value in VALUES}
    return [
        Trend("figure5", "A larger ε gives better recommendation (β = 1)", "epsilon", ("PrivSR",), (ERROR,),
              rises=False, values=VALUES, at=beta, floor=FLOOR),
        _protected("figure5", "A larger ε gives worse protection (β = 1)",
                   lambda at, said, by: Trend(at, said, "epsilon", ("PrivSR",), (by,), rises=False, values=VALUES,
                                              at=beta)),
        Order("figure5", "At fixed ε recommendation stays the same whatever β (read as: MAE of any two β within 1 % "
              "of each other)",
              tuple((at[beta_a], at[other]) for beta_a, other in permutations(VALUES, 2)),
              (replace(ERROR, factor=ALIKE),), floor=FLOOR),
        _protected("figure5", "At fixed ε protection of sensitive ratings falls with β",
                   lambda at, said, by: Trend(at, said, "beta", ("PrivSR",), (by,), rises=False, values=VALUES,
                                              at=epsilon)),
    ]  # fmt: skip


def _protected(artefact: str, claim: str, spec: Callable[[str, str, Measure], Spec]) -> Readings:
    """A claim of protection by either attack."""
    return Readings(artefact, claim, {reading: spec(artefact, claim, by) for reading, by in ATTACKS.items()})

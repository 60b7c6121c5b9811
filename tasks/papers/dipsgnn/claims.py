"""What DIPSGNN's paper says in sections 5.2 to 5.5 that our numbers can test.

Source: Hu and Fang, arXiv 2309.11515 (2024). Everything is under protocol next, as the paper has it. Claims that name
ML-1M, or a number of it, are tested on ML-1M alone; all others also on data of which the paper prints nothing.
"""

from __future__ import annotations

from dataclasses import replace

from tasks.papers.dipsgnn.authors_code import CHOSEN
from tasks.papers.dipsgnn.authors_code import SYSTEM as AUTHORS_CODE
from tasks.papers.dipsgnn.published import (
    CLIP,
    DIGITS,
    DIPSGNN,
    EPSILON,
    FEATURES_EPSILON,
    GRAPHS,
    OPEN,
    STEPS,
)
from tasks.reporting.core import comparison
from tasks.reporting.core.claim_specs import Claim, Measure, Order, Readings, Side, Spec, Trend, pairs_of
from tasks.reporting.core.results import Results

CUTOFF = 20
"""Of the figures."""
MUCH, SLIGHT = 2.0, 0.9
"""How many times as well "much worse" is worse than, and what a slight decrease leaves; the paper says no number."""


def claims(results: Results, _: int) -> tuple[list[Spec | Readings], list[Claim]]:
    """All claims that tests decide, and those of arithmetic alone, of which there are none."""
    printed = comparison.printed_values(results, DIPSGNN)
    clip = _clip(as_released=results.find_compared(AUTHORS_CODE) is not None) if printed else []
    return [*_table2(printed), *_budgets(), *_steps(), *clip, *_features()], []


def _table2(printed: dict[tuple[str, str, str, str], float]) -> list[Spec]:
    every = tuple(measure for k in (20, 10) for measure in _measures(k))
    others = tuple(name for name in OPEN if name not in ("SRGNN", "APGNN"))
    specs: list[Spec] = [
        Order("table2", "SRGNN and APGNN rank best of the methods without privacy",
              (*pairs_of("SRGNN", others), *pairs_of("APGNN", others)), every),
        Order("table2", "DPMF with explicit feedback ranks better than with implicit feedback",
              pairs_of("DPMF_exp", ("DPMF_imp",)), every),
        Order("table2", "Both DPMFs rank much worse than EdgeRand and DIPSGNN (read as: at most half)", tuple(
            pair for name in GRAPHS for pair in pairs_of(name, ("DPMF_imp", "DPMF_exp"))
        ), _scale(every, MUCH, against=1.0)),
        Order("table2", "DPSGD ranks much worse than EdgeRand and DIPSGNN (read as: at most half)", tuple(
            pair for name in GRAPHS for pair in pairs_of(name, ("DPSGD",))
        ), _scale(every, MUCH, against=1.0)),
        Order("table2", "DIPSGNN ranks better than EdgeRand", pairs_of("DIPSGNN", ("EdgeRand",)), every),
        Order("table2", "DIPSGNN ranks better than LightGCN, HRNN and SASRec",
              pairs_of("DIPSGNN", ("LightGCN", "HRNN", "SASRec")), every),
    ]  # fmt: skip
    gain = _gain(printed)
    if gain is not None:  # of ML-1M alone
        specs += [
            Order("table2", f"DIPSGNN's Recall@20 is {100 * (gain - 1):.2f} % above EdgeRand's (read as: by half "
                  "of it at least)", pairs_of("DIPSGNN", ("EdgeRand",)), _scale(_measures(20)[:1], (1 + gain) / 2)),
            Order("table2", "DIPSGNN beats APGNN, the best method without privacy, on MRR@20, Recall@10 and MRR@10",
                  pairs_of("DIPSGNN", ("APGNN",)), every[1:]),
            Order("table2", "DIPSGNN beats SRGNN", pairs_of("DIPSGNN", ("SRGNN",)), every),
        ]  # fmt: skip
    return specs


def _budgets() -> list[Spec]:
    recall = _measures(CUTOFF)[:1]
    specs: list[Spec] = []
    for figure, key, values, name in (
        ("figure3", "epsilon", EPSILON, "ε2"),
        ("figure4", "features_epsilon", FEATURES_EPSILON, "ε1"),
    ):
        specs += [
            Trend(figure, f"{method} ranks better with a larger {name}", key, (method,), recall, rises=True,
                  values=values)
            for method in GRAPHS
        ]  # fmt: skip
        specs.append(
            Order(figure, f"DIPSGNN ranks above EdgeRand at every {name}", tuple(
                (Side("DIPSGNN", key, value), Side("EdgeRand", key, value)) for value in values
            ), recall)
        )  # fmt: skip
    specs.append(
        Trend("figure3", "The gap between DIPSGNN and EdgeRand grows with ε2", "epsilon", ("EdgeRand",), recall,
              rises=True, below="DIPSGNN", values=EPSILON)
    )  # fmt: skip
    return specs


def _steps() -> list[Spec | Readings]:
    recall = _measures(CUTOFF)[:1]
    slight = "DIPSGNN's decrease with T is slight (read as: it keeps at least 90 % of Recall@20 at T = 1)"
    falling: list[Spec] = [
        Trend("figure5", f"{method} ranks worse with a larger T", "steps", (method,), recall, rises=False, values=STEPS)
        for method in GRAPHS
    ]
    return [
        *falling,
        Readings("figure5", slight, {
            "at T = 3": _slight(slight, 3.0, recall),
            "at T = 5": _slight(slight, 5.0, recall),
        }),
        Trend("figure5", "EdgeRand falls faster with T than DIPSGNN", "steps", ("EdgeRand",), recall, rises=True,
              below="DIPSGNN", values=STEPS),
    ]  # fmt: skip


def _slight(claim: str, steps: float, recall: tuple[Measure, ...]) -> Order:
    pair = Side("DIPSGNN", "steps", steps), Side("DIPSGNN", "steps", 1.0)
    return Order("figure5", claim, (pair,), _scale(recall, SLIGHT))


def _clip(*, as_released: bool) -> list[Spec | Readings]:
    """Of ML-1M alone: on Tmall the paper's Recall@20 first increases."""
    recall = _measures(CUTOFF)[:1]
    tested = Measure(f"Recall@{CUTOFF} chosen on test", f"{CHOSEN}next/recall", (CUTOFF,), "higher", digits=DIGITS)
    falls = "Recall@20 falls with C"
    readings: dict[str, Spec] = {
        "with the noise of its Theorem 4.2": Trend("figure6", falls, "clip", ("DIPSGNN",), recall, rises=False)
    }
    if as_released:
        readings["with the noise of its authors' code, of which σ²/C grows with C"] = Trend(
            "figure6", falls, "clip", (AUTHORS_CODE,), (recall[0], tested), rises=False
        )
    best = Side("DIPSGNN", "clip", CLIP[0])
    others = tuple((best, Side("DIPSGNN", "clip", value)) for value in CLIP[1:])
    return [Readings("figure6", falls, readings), Order("figure6", f"C = {CLIP[0]:g} ranks best", others, recall)]


def _features() -> list[Spec]:
    recall = _measures(CUTOFF)[:1]
    return [
        Order(
            "figure7",
            "Features help without privacy: Nonp ranks above Nonp-U",
            pairs_of("Nonp", ("Nonp-U",)),
            recall,
        ),
        Order(
            "figure7",
            "Features help with privacy: Priv ranks above Priv-U",
            pairs_of("Priv", ("Priv-U",)),
            recall,
        ),
    ]


def _measures(k: int) -> tuple[Measure, ...]:
    return tuple(
        Measure(f"{label}@{k}", f"next/{metric}", (k,), "higher", digits=DIGITS)
        for label, metric in (("Recall", "recall"), ("MRR", "mrr"))
    )


def _scale(measures: tuple[Measure, ...], factor: float, against: float | None = None) -> tuple[Measure, ...]:
    return tuple(replace(measure, factor=factor, against=against) for measure in measures)


def _gain(printed: dict[tuple[str, str, str, str], float]) -> float | None:
    """DIPSGNN's printed Recall@20 as a multiple of EdgeRand's; None on data without printed numbers."""
    private, baseline = (printed.get(("table2", name, "", "recall@20")) for name in GRAPHS)
    return None if private is None or baseline is None else private / baseline

"""What DIPSGNN's paper says in sections 5.2 to 5.5 that our numbers can test.

Source: Hu and Fang, arXiv 2309.11515 (2024). Everything is under protocol next, as the paper has it. Claims that name
ML-1M, or a number of it, are tested on ML-1M alone; all others also on data of which the paper prints nothing.
"""

from __future__ import annotations

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
from tasks.reporting.core.claim_specs import Claim, Measure, Order, Side, Spec, Trend, pairs_of
from tasks.reporting.core.results import Results

CUTOFF = 20
"""Of the figures."""


def claims(results: Results, _: int) -> tuple[list[Spec], list[Claim]]:
    """All claims that tests decide, and those of arithmetic alone, of which there are none."""
    printed = comparison.printed_values(results, DIPSGNN)
    clip = _clip(on_paper_data=bool(printed), as_released=results.find_compared(AUTHORS_CODE) is not None)
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
        ), _scale(every, 2.0)),
        Order("table2", "DPSGD ranks much worse than EdgeRand and DIPSGNN (read as: at most half)", tuple(
            pair for name in GRAPHS for pair in pairs_of(name, ("DPSGD",))
        ), _scale(every, 2.0)),
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


def _steps() -> list[Spec]:
    recall = _measures(CUTOFF)[:1]
    falling: list[Spec] = [
        Trend("figure5", f"{method} ranks worse with a larger T", "steps", (method,), recall, rises=False, values=STEPS)
        for method in GRAPHS
    ]
    return [
        *falling,
        Trend("figure5", "EdgeRand falls faster with T than DIPSGNN", "steps", ("EdgeRand",), recall, rises=True,
              below="DIPSGNN", values=STEPS),
    ]  # fmt: skip


def _clip(*, on_paper_data: bool, as_released: bool) -> list[Spec]:
    recall = _measures(CUTOFF)[:1]
    specs: list[Spec] = [Trend("figure6", "Recall@20 falls with C", "clip", ("DIPSGNN",), recall, rises=False)]
    if as_released:
        tested = Measure(f"Recall@{CUTOFF} chosen on test", f"{CHOSEN}next/recall", (CUTOFF,), "higher", digits=DIGITS)
        specs.append(
            Trend("figure6", "With the noise of the authors' code, of which σ²/C grows with C, Recall@20 falls with C",
                  "clip", (AUTHORS_CODE,), (recall[0], tested), rises=False)
        )  # fmt: skip
    if on_paper_data:
        best = Side("DIPSGNN", "clip", CLIP[0])
        specs.append(
            Order("figure6", f"C = {CLIP[0]:g} ranks best", tuple(
                (best, Side("DIPSGNN", "clip", value)) for value in CLIP[1:]
            ), recall)
        )  # fmt: skip
    return specs


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


def _scale(measures: tuple[Measure, ...], factor: float) -> tuple[Measure, ...]:
    return tuple(
        Measure(measure.name, measure.metric, measure.ks, measure.better, factor=factor, digits=measure.digits)
        for measure in measures
    )


def _gain(printed: dict[tuple[str, str, str, str], float]) -> float | None:
    """DIPSGNN's printed Recall@20 as a multiple of EdgeRand's; None on data without printed numbers."""
    private, baseline = (printed.get(("table2", name, "", "recall@20")) for name in GRAPHS)
    return None if private is None or baseline is None else private / baseline

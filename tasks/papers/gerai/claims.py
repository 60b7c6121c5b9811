"""What GERAI says in sections 5.4 to 5.8 that our numbers can test.

Source: Zhang et al., "Graph Embedding for Recommendation against Attribute Inference Attacks" (The Web Conference
2021). The paper does not say what a held-out item is ranked against: each claim of ranking is read among 100 items that
the user never rated, as its printed BPR fits, and among all. Protection is the F1 of the neural attacker (lower is
safer). Where the paper names no cut-off (Figure 2), the report's own is used.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from tasks.papers.gerai.published import GERAI
from tasks.privacy.mechanisms import functional
from tasks.reporting.core.claim_specs import Claim, Measure, Order, Readings, Side, Spec, Trend, pairs_of
from tasks.reporting.core.published import ATTACKERS, CUTOFFS
from tasks.reporting.core.results import YARDSTICKS, Results

ATTRIBUTES = ("age", "gender", "occupation")
COMPARED = ("BPR", "GCN", "Blurm", "DPAE", "DPNE", "DPMF", "RAP")
"""Every method of Tables 2, 3 and 5 but GERAI."""
PRIVATE = ("Blurm", "DPAE", "DPNE", "DPMF", "RAP")
BLURM = {"withheld": Side("Blurm"), "offered": Side("Blurm", setting="added=offered", version="offered")}
"""The paper does not say which, and the ranking depends on it."""
CANDIDATES = {"sampled-100": "100 items that the user never rated", "full": "all items"}
"""Nor which items a held-out one is ranked against."""
NOISY = ("DPAE", "DPNE", "DPMF")
SWEPT = {
    "epsilon": (0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
    "features_epsilon": (0.5, 5.0, 10.0, 20.0),
    "dimension": (20.0, 40.0, 60.0, 80.0, 100.0),
}
"""What Figure 2 varies."""
NOISE = ("0.00375", "0.01375", "0.03", "0.05", "0.08")
"""The printed scales of the Laplace noise for the dimensions of `SWEPT` (section 5.6)."""
EPSILON, N_TRIPLES = 0.4, 80_000
"""The paper's budget of the loss, and 80 % of the ratings of ML-100K."""


def claims(results: Results, k: int) -> tuple[list[Spec | Readings], list[Claim]]:
    """All claims: those that tests decide, and one of arithmetic alone; `k` is the cut-off for Figure 2."""
    return specs(results, k), [noise_scales()]


def specs(results: Results, k: int) -> list[Spec | Readings]:
    """All claims that tests decide; `k` is the cut-off for Figure 2."""
    return [*_table2(results), *_table3(), *_table4(results), *_table5(), *_figure2(k)]


def noise_scales() -> Claim:
    """The noise that Figure 2 is said to have, beside the paper's own formula: no run is needed."""
    scales = [functional.noise_scale(int(d), EPSILON, N_TRIPLES) for d in SWEPT["dimension"]]
    fits = all(
        abs(scale - float(text)) <= 0.5 * 10.0 ** -len(text.partition(".")[2])
        for scale, text in zip(scales, NOISE, strict=True)
    )
    return Claim(
        "figure2",
        f"The noise parameters for d = 20 to 100 are {', '.join(NOISE)}",
        "supported" if fits else "contradicted",
        f"(d + d²/4)/(ε|D|) with ε = {EPSILON:g} and |D| = {N_TRIPLES:,} gives "
        f"{', '.join(f'{scale:.5g}' for scale in scales)}{'; the printed ones are rounded' if fits else ''}.",
    )


def _table2(results: Results) -> list[Spec]:
    every, late = _f1(CUTOFFS), _f1((15, 20, 25, 30))
    best = pairs_of("GERAI", COMPARED)
    return [
        Order("table2", "GERAI has the lowest F1 of all methods for K from 15 to 30, on all attributes", best, late),
        Order("table2", "RAP is slightly below GERAI on age at K = 5 and 10", pairs_of("RAP", ("GERAI",)), (
            _attack("age", (5, 10)),
        )),
        Order("table2", "In all other cases GERAI is below RAP", pairs_of("GERAI", ("RAP",)), (
            _attack("age", (15, 20, 25, 30)), _attack("gender", CUTOFFS), _attack("occupation", CUTOFFS),
        )),
        Order("table2", "GERAI resists significantly better than Blurm", pairs_of("GERAI", ("Blurm",)), every),
        Order("table2", "Methods with differential privacy have a lower F1 than BPR and GCN", tuple(
            pair for method in (*NOISY, "GERAI") for pair in pairs_of(method, ("BPR", "GCN"))
        ), every),
        Order("table2", "GERAI is below all other methods with differential privacy", pairs_of("GERAI", NOISY), every),
        Order("table2", "GCN protects the least of all methods", tuple(
            (Side(method), Side("GCN")) for method in ("GERAI", *COMPARED) if method != "GCN"
        ), every),
        Order("table2", "On average GERAI improves on GCN by 11 % on age, 14.4 % on gender and 6.75 % on occupation "
              "(read as: by half of what the table shows at least)", pairs_of("GERAI", ("GCN",)),
              tuple(_attack(name, CUTOFFS, factor=(1 + share) / 2) for name, share in _shares(results).items())),
        Trend("table2", "F1 falls slightly with K", "K", ("GERAI", *COMPARED), every, rises=False),
    ]  # fmt: skip


def _table3() -> list[Spec | Readings]:
    private, others = pairs_of("GERAI", PRIVATE), tuple(name for name in COMPARED if name != "GCN")
    return [
        _ranked("table3", "GCN ranks best of all methods, except at K = 30", CUTOFFS[:-1],
                lambda at, said, over: Order(at, said, pairs_of("GCN", ("GERAI", *others)), over)),
        _ranked("table3", "GERAI ranks above all private baselines", CUTOFFS,
                lambda at, said, over: Order(at, said, private, over)),
        _ranked("table3", "GERAI comes closer to GCN than RAP does (from below or from above)", CUTOFFS,
                lambda at, said, over: Order(at, said, pairs_of("GERAI", ("RAP",)), over, near="GCN")),
        Readings("table3", "Blurm ranks worst of all methods", {
            f"with the items that it adds {added} as recommendations, among {candidates}": Order(
                "table3", "Blurm ranks worst",
                tuple((Side(method), blurm) for method in ("GERAI", *COMPARED) if method != "Blurm"),
                _ranking(CUTOFFS, protocol=protocol),
            )
            for protocol, candidates in CANDIDATES.items() for added, blurm in BLURM.items()
        }),
        _ranked("table3", "The gap between GCN and GERAI shrinks with K", CUTOFFS,
                lambda at, said, over: Trend(at, said, "K", ("GERAI",), over, rises=False, near="GCN")),
    ]  # fmt: skip


def _table4(results: Results) -> list[Spec | Readings]:
    protection = _f1((5,))
    orders: list[Spec | Readings] = [
        Order("table4", "Noise on the loss alone (GERAI-NL) lowers F1 below GCN's", pairs_of("GERAI-NL", ("GCN",)),
              protection),
        Order("table4", "Noise on the features alone (GERAI-NF) lowers F1 below GCN's", pairs_of("GERAI-NF", ("GCN",)),
              protection),
        Order("table4", "Raw features leak: GERAI is significantly below GERAI-NL", pairs_of("GERAI", ("GERAI-NL",)),
              protection),
        Order("table4", "Both noises together protect better than the features' alone (GERAI-NF)",
              pairs_of("GERAI", ("GERAI-NF",)), protection),
    ]  # fmt: skip
    loss = _largest_loss(results)
    if loss is not None:
        text = (
            f"Each noise costs little ranking (read as: at most half more than the {100 * loss:.0f} % of GCN's that "
            "the table shows)"
        )
        variants = tuple((Side(method), Side("GCN")) for method in ("GERAI-NL", "GERAI-NF", "GERAI"))
        orders.append(_ranked("table4", text, (5,), lambda at, said, over: Order(at, said, variants, over),
                              factor=1 - 1.5 * loss))  # fmt: skip
    return orders


def _table5() -> list[Spec]:
    cases = tuple(
        _attack(name, (5,), attacker) for name in ATTRIBUTES for attacker in ATTACKERS if attacker != "neural"
    )
    return [
        Order("table5", "GERAI has the lowest F1 against other attackers in most cases", pairs_of("GERAI", COMPARED),
              cases, most=True),
        Order("table5", "RAP resists worse than GERAI against attackers that are no neural network",
              pairs_of("GERAI", ("RAP",)), cases),
    ]  # fmt: skip


def _figure2(k: int) -> list[Spec | Readings]:
    protection = _f1((k,))

    def protects(key: str, claim: str) -> Trend:
        return Trend("figure2", claim, key, ("GERAI",), protection, rises=True)

    def ranks(key: str, claim: str) -> Readings:
        return _ranked(
            "figure2", claim, (k,), lambda at, said, over: Trend(at, said, key, ("GERAI",), over[:1], rises=True)
        )

    def above(claim: str, pairs: tuple[tuple[Side, Side], ...], *, most: bool = False) -> Readings:
        return _ranked(
            "figure2", claim, (k,), lambda at, said, over: Order(at, said, pairs, over[:1], most=most, apart=most)
        )

    def extreme(key: str, value: float, *, best: bool) -> tuple[tuple[Side, Side], ...]:
        this = Side("GERAI", key, value)
        others = [Side("GERAI", key, other) for other in SWEPT[key] if other != value]
        return tuple((this, other) if best else (other, this) for other in others)

    lowest = Side("GERAI", "features_epsilon", 0.5)
    return [
        ranks("epsilon", "A smaller ε costs ranking"),
        protects("epsilon", "A smaller ε protects better"),
        above("GERAI ranks above RAP in general, whatever ε", tuple(
            (Side("GERAI", "epsilon", value), Side("RAP")) for value in SWEPT["epsilon"]
        ), most=True),
        ranks("features_epsilon", "A smaller ε of the features costs ranking significantly"),
        above("At 0.5, ε of the features ranks worse than at any larger value",
              extreme("features_epsilon", 0.5, best=False)),
        above("At 0.5, GERAI cannot capture what users prefer (read as: popularity ranks better)",
              ((Side(YARDSTICKS[0]), lowest),)),
        above("ε of the features of 20 ranks best", extreme("features_epsilon", 20.0, best=True)),
        protects("features_epsilon", "A smaller ε of the features protects better"),
        ranks("dimension", "A larger d ranks better"),
        Order("figure2", "d = 60 commonly protects best", extreme("dimension", 60.0, best=True), protection, most=True),
    ]  # fmt: skip


def _attack(attribute: str, ks: tuple[int, ...], attacker: str = "neural", factor: float = 1.0) -> Measure:
    name = f"F1 {attribute}" if attacker == "neural" else f"F1 {attribute}, {ATTACKERS[attacker]}"
    return Measure(name, f"attribute/{attribute}/{attacker}/f1", ks, "lower", factor)


def _f1(ks: tuple[int, ...]) -> tuple[Measure, ...]:
    return tuple(_attack(attribute, ks) for attribute in ATTRIBUTES)


def _ranking(ks: tuple[int, ...], factor: float = 1.0, protocol: str = "sampled-100") -> tuple[Measure, ...]:
    at = f"@{ks[0]}" if len(ks) == 1 else ""
    return tuple(
        Measure(f"{name}{at}", f"{protocol}/{metric}", ks, "higher", factor)
        for name, metric in (("Hit", "hit"), ("NDCG", "ndcg"))
    )


def _ranked(
    artefact: str,
    claim: str,
    ks: tuple[int, ...],
    spec: Callable[[str, str, tuple[Measure, ...]], Spec],
    factor: float = 1.0,
) -> Readings:
    """A claim of ranking by either set of candidates; spec: what tests it by Hit and NDCG at ks."""
    return Readings(artefact, claim, {
        f"among {candidates}": spec(artefact, claim, _ranking(ks, factor, protocol))
        for protocol, candidates in CANDIDATES.items()
    })  # fmt: skip


def _shares(results: Results) -> dict[str, float]:
    """GERAI's mean F1 over K as a share of GCN's in the printed Table 2, by attribute."""
    printed = results.published.filter((pl.col("paper") == GERAI.key) & (pl.col("artefact") == "table2"))
    shares = {}
    for attribute in ATTRIBUTES:
        rows = printed.filter(pl.col("metric").str.starts_with(f"f1_{attribute}@"))
        private, public = (rows.filter(pl.col("method") == name)["value"].to_numpy() for name in ("GERAI", "GCN"))
        if len(private) and len(public):
            shares[attribute] = float(private.mean() / public.mean())
    return shares


def _largest_loss(results: Results) -> float | None:
    """The largest share of GCN's Hit@5 or NDCG@5 that a variant loses in the printed Table 4."""
    printed = results.published.filter(
        (pl.col("paper") == GERAI.key) & (pl.col("artefact") == "table4") & pl.col("metric").is_in(["hit@5", "ndcg@5"])
    )
    losses = [
        1 - rows.filter(pl.col("method") != "GCN")["value"].min() / rows.filter(pl.col("method") == "GCN")["value"][0]
        for _, rows in printed.group_by("metric", maintain_order=True)
    ]
    return max(losses) if losses else None

"""What DP-VAE's paper says in its sections 3.2 and 4 that our numbers can test.

Source: Fang, Du and Wu, Knowledge-Based Systems (2022). Ranking is read as NDCG@100, Recall@20 and Recall@50 (its
section 4.1.2) unless a claim names another; settings are those of `published.py` beside this. A claim with a number
of one data set is tested on that data set alone.
"""

from __future__ import annotations

from dataclasses import replace

from tasks.papers.dpvae import preparation
from tasks.papers.dpvae.published import (
    BASELINES,
    BOTH,
    CLIPPED,
    COLUMNS,
    COMPARED,
    CONSTANT,
    DPVAE,
    EPSILON_MAX,
    GENERALISED,
    NDCG,
    OPTIMAL,
    PLAIN,
    PRIORS,
    RECALL,
    STANDARD,
    USER,
)
from tasks.reporting.core.claim_specs import Claim, Measure, Order, Readings, Side, Spec, Trend
from tasks.reporting.core.results import YARDSTICKS, Results

LENGTHS = (5, 10, *range(20, 101, 10))
"""The R of Figure 3."""
FROM = 20
"""From this R on, the paper says that DP-VAE has the better NDCG on ML-20M and Netflix; read so on ML-100K too."""
SLIGHTLY = 0.1
"""What "slightly higher" leaves above, as a share; the paper says no number."""
BOUND = "3 to 1,772"
SMALL = "ml-100k"
FLOOR = YARDSTICKS[0]
"""Popularity: the evidence says how much of what a claim calls better ranks below it."""
UNOBSERVED, SCALED = "unobserved=0.1", "scaled=True"
"""Settings of SVD and of KNN that the paper may as well mean."""
MEASURES = tuple(Measure(column.label, column.metric, (column.k,), "higher") for column in COLUMNS)
PLAIN_DPVAE = Side("DP-VAE", setting=PLAIN, version="NUP, CCB")
PRIORS_DPVAE = Side("DP-VAE", setting=PRIORS, version="ULP, CCB")
CLIPPED_DPVAE = Side("DP-VAE", setting=CLIPPED, version="NUP, OCB")
BOTH_DPVAE = Side("DP-VAE", setting=BOTH, version=None)
PLAIN_VAE = Side("VAE", setting=STANDARD, version="NUP")
PRIORS_VAE = Side("VAE", setting=USER, version=None)


def claims(results: Results, _: int) -> tuple[list[Spec | Readings], list[Claim]]:
    """All claims that tests decide, and those of counting alone."""
    small = results.origin == SMALL
    specs: list[Spec | Readings] = [
        *_priors(small=small),
        *_clip(),
        *_comparison_claims(small=small),
        *_lengths(),
        *_joint_claims(),
        *_generalisation_claims(),
    ]
    if small:
        specs += _budgets()
    else:
        specs += _construction_claims()
    tested = [*_preservation_claims(results), *_not_constructed(results)]
    return specs, tested


def _preservation_claims(results: Results) -> list[Claim]:
    """Section 4.2.1 of ML-100K: no run is needed."""
    if results.origin != SMALL:
        return []
    ours = preparation.our_counts(results.processed)
    (first, last), same = ours.values(), ours["original"] == ours["preprocessed"]
    left = ", ".join(f"{last[name]:,.0f} of {first[name]:,.0f} {name}" for name in ("users", "items", "ratings"))
    return [
        Claim(
            DPVAE.data_table,
            f"The bound on a user's contribution, {BOUND}, preserves all of ML-100K",
            "supported" if same else "contradicted",
            f"Held to users alone, it leaves {left}. Omitting items too, as section 4.1.1 says, would take out those "
            "with one or two ratings.",
        )
    ]


def _not_constructed(results: Results) -> list[Claim]:
    """Table 5 on data of which pre-processing leaves everything."""
    if results.origin != SMALL:
        return []
    return [
        Claim(
            "table5",
            "The constructed data sets improve every method significantly",
            "not run",
            "The paper tests it on ML-20M and Netflix alone: of ML-100K the bound leaves everything, so original and "
            "pre-processed data are the same.",
        )
    ]


def _construction_claims() -> list[Spec]:
    specs: list[Spec] = []
    ours = {"DP-VAE": PLAIN_DPVAE, "VAE": PLAIN_VAE}
    pairs = tuple(
        (this, Side(f"{DPVAE.methods[method]}-original", setting=this.setting, version=this.version))
        for method in COMPARED
        for this in (ours.get(method, Side(method)),)
    )
    specs.append(Order("table5", "The constructed data sets improve every method significantly", pairs, MEASURES))
    return specs


def _priors(*, small: bool) -> list[Spec]:
    specs: list[Spec] = [
        Order("table6", "User-level priors improve DP-VAE", ((PRIORS_DPVAE, PLAIN_DPVAE),), MEASURES),
        Order("table6", "User-level priors improve VAE", ((PRIORS_VAE, PLAIN_VAE),), MEASURES),
    ]
    if small:
        ndcg, _, recall = MEASURES
        gained = (replace(ndcg, factor=1.025), replace(recall, factor=1.02))
        specs.append(
            Order("table6", "They improve DP-VAE's NDCG@100 by 5 % and its Recall@50 by 4 % (read as: by half of "
                  "it at least)", ((PRIORS_DPVAE, PLAIN_DPVAE),), gained)
        )  # fmt: skip
    return specs


def _clip() -> list[Spec]:
    return [Order("table7", "The optimal clipping bound improves DP-VAE", ((CLIPPED_DPVAE, PLAIN_DPVAE),), MEASURES,
                  floor=FLOOR)]  # fmt: skip


def _comparison_claims(*, small: bool) -> list[Spec]:
    ndcg, *recalls = MEASURES
    ours, vae = Side("DP-VAE"), Side("VAE")
    specs: list[Spec] = [
        Order("table8", f"DP-VAE ranks above {other}", ((ours, Side(other)),), MEASURES) for other in BASELINES
    ]
    specs.append(Order("table8", "DP-VAE ranks below VAE", ((vae, ours),), MEASURES))
    if small:
        specs += [
            Order("table8", "Privacy costs VAE only about 6.8 % of its NDCG@100 (read as: at most 7 %)",
                  ((ours, vae),), (replace(ndcg, factor=0.93),)),
            Order("table8", "Its Recall is around 16 % lower (read as: at most 16 %; the table has 14.5 and 13.3 %)",
                  ((ours, vae),), tuple(replace(measure, factor=0.84) for measure in recalls)),
        ]  # fmt: skip
    return specs


def _lengths() -> list[Spec | Readings]:
    ours, neighbours, below = Side("DP-VAE"), ("KNN", "SVD"), "They have a lower NDCG@10 than VAE"
    read = (Side("SVD"), Side("KNN"))
    otherwise = (Side("SVD", setting=UNOBSERVED, version="unobserved cells"),
                 Side("KNN", setting=SCALED, version="rows of length 1"))  # fmt: skip
    at_ten = (Measure("NDCG@10", NDCG, (10,), "higher"),)
    long = tuple(Measure(f"NDCG@{k}", NDCG, (k,), "higher") for k in LENGTHS if k >= FROM)
    recalls = tuple(Measure(f"Recall@{k}", RECALL, (k,), "higher") for k in LENGTHS)
    return [
        Order("figure3", "DP-VAE has a higher Recall@R than the baselines at every R",
              tuple((ours, Side(other)) for other in BASELINES), recalls),
        Order("figure3", f"KNN and SVD have a slightly higher NDCG@10 than DP-VAE (read as: by at most "
              f"{100 * SLIGHTLY:g} %)", tuple((Side(other), ours) for other in neighbours), at_ten, at_most=SLIGHTLY),
        Readings("figure3", below, {
            reading: Order("figure3", below, tuple((Side("VAE"), other) for other in others), at_ten)
            for reading, others in (("from rated cells alone, by distance of the rows as they are", read),
                                    ("with unobserved cells, by distance of rows of length 1", otherwise))
        }),
        Trend("figure3", "KNN and SVD degrade sharply in NDCG@R as R grows (read as: they fall behind DP-VAE)", "K",
              neighbours, (Measure("NDCG@R", NDCG, LENGTHS, "higher"),), rises=True, below="DP-VAE"),
        Order("figure3", f"DP-VAE has a higher NDCG@R than the baselines at larger R (read as: from {FROM} on)",
              tuple((ours, Side(other)) for other in BASELINES), long),
    ]  # fmt: skip


def _joint_claims() -> list[Spec]:
    return [
        Order("table9", "Priors and optimal clip together (OV) improve plain DP-VAE (NV)",
              ((BOTH_DPVAE, PLAIN_DPVAE),), MEASURES, floor=FLOOR),
    ]  # fmt: skip


def _budgets() -> list[Spec]:
    """Section 4.2.5, which speaks of ML-100K alone."""
    ours = {value: Side("DP-VAE", "epsilon_max", value) for value in EPSILON_MAX}
    recalls = tuple(replace(measure, factor=2.0) for measure in MEASURES[1:])
    return [
        Trend("table10", "DP-VAE ranks better with a larger ε_max", "epsilon_max", ("DP-VAE",), MEASURES, rises=True,
              values=EPSILON_MAX, floor=FLOOR),
        Order("table10", "At ε_max = 0.5 DP-VAE still ranks above every baseline but VAE",
              tuple((ours[0.5], Side(other)) for other in BASELINES), MEASURES),
        Order("table10", "At ε_max = 0.3 Recall@20 and Recall@50 degrade sharply (read as: to less than half of those "
              "at 0.5)", ((ours[0.5], ours[0.3]),), recalls),
        Order("table10", "VAE ranks above DP-VAE at every ε_max",
              tuple((Side("VAE"), side) for side in ours.values()), MEASURES),
    ]  # fmt: skip


def _generalisation_claims() -> list[Spec]:
    return [
        Order("table11", f"With the optimal clip (DP-O) {method} ranks above {method} with the general DP-SGD (DP; "
              "read as: with DP-VAE's constant bound)",
              ((Side(method, setting=OPTIMAL, version="DP-O"), Side(method, setting=CONSTANT, version="DP")),),
              MEASURES, floor=FLOOR)
        for method in GENERALISED
    ]  # fmt: skip

"""Tables and figures of GERAI (Zhang et al., The Web Conference 2021)."""

from __future__ import annotations

from tasks.reporting.core.published import (
    ATTACKERS,
    CUTOFFS,
    FULL,
    RANKING,
    SAMPLED,
    Figure,
    Paper,
    Part,
    Quality,
    Table,
    attack,
    ranking,
)

_METHODS = {
    "BPR": "bpr",
    "GCN": "gcn",
    "Blurm": "blurm",
    "DPAE": "dpae",
    "DPNE": "dpne",
    "DPMF": "dpmf",
    "RAP": "rap",
    "GERAI": "gerai",
    "GERAI-NL": "gerai-nl",
    "GERAI-NF": "gerai-nf",
}
_COMPARED = ("BPR", "GCN", "Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI")
_PRINTED_ATTRIBUTES = ("age", "gender", "occupation")
_FULL_NDCG = Quality("full/ndcg", "NDCG", FULL, "full ranking")


def _ranking_table(protocol: str, *, comparable: bool) -> Table:
    return Table(
        key="table3",
        name="Table 3",
        title="Recommendation effectiveness",
        note=(
            "Each held-out item is ranked against 100 items that the user never rated (protocol sampled-100)."
            if comparable
            else "Every item except the user's training items is ranked (protocol full)."
        ),
        remark=(
            "The paper does not name its protocol; sampled-100 is our reading. Our models are tuned on validation, and "
            "popularity needs no tuning: compare its row with the printed ones."
            if comparable
            else "The paper prints no counterpart: these numbers must not be set beside its Table 3."
        ),
        methods=_COMPARED,
        parts=tuple(
            Part(f"{RANKING[metric]}@K", tuple(ranking(metric, k, protocol) for k in CUTOFFS))
            for metric in ("hit", "ndcg")
        ),
        comparable=comparable,
    )


GERAI = Paper(
    key="gerai",
    name="GERAI",
    reference=(
        "S. Zhang, H. Yin, T. Chen, Z. Huang, L. Cui, X. Zhang: "
        "Graph Embedding for Recommendation against Attribute Inference Attacks. The Web Conference 2021."
    ),
    methods=_METHODS,
    protecting=("Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI"),
    tables=(
        Table(
            key="table2",
            name="Table 2",
            title="Attribute inference by the neural attacker",
            note="F1 of a two-layer network that sees a user's ratings and top-K recommendations. Lower is safer.",
            methods=_COMPARED,
            parts=tuple(
                Part(f"Attribute: {attribute}", tuple(attack(attribute, k) for k in CUTOFFS))
                for attribute in _PRINTED_ATTRIBUTES
            ),
        ),
        _ranking_table(SAMPLED, comparable=True),
        _ranking_table(FULL, comparable=False),
        Table(
            key="table4",
            name="Table 4",
            title="Ablation",
            note=(
                "GERAI-NL sees raw features and a noisy loss, GERAI-NF noisy features and a plain loss, GCN neither "
                "noise. Hit and NDCG under sampled-100."
            ),
            methods=("GCN", "GERAI-NL", "GERAI-NF", "GERAI"),
            parts=(
                Part(
                    "Recommendation and attribute inference at K = 5",
                    (
                        ranking("hit", 5, SAMPLED, "Hit@5"),
                        ranking("ndcg", 5, SAMPLED, "NDCG@5"),
                        *(attack(attribute, 5, label=f"F1 {attribute}") for attribute in _PRINTED_ATTRIBUTES),
                    ),
                ),
            ),
        ),
        Table(
            key="table5",
            name="Table 5",
            title="Attribute inference by other attackers",
            note="F1 of four other attackers that see a user's ratings and top-5 recommendations. Lower is safer.",
            methods=_COMPARED,
            parts=tuple(
                Part(
                    f"Attribute: {attribute}",
                    tuple(
                        attack(attribute, 5, attacker, f"attacker={attacker}", ATTACKERS[attacker])
                        for attacker in ("decision_tree", "naive_bayes", "knn", "gaussian_process")
                    ),
                )
                for attribute in _PRINTED_ATTRIBUTES
            ),
        ),
    ),
    figures=(
        Figure(
            key="figure2",
            name="Figure 2",
            title="Budget of the loss, budget of the features, and embedding size",
            method="GERAI",
            parameters=("ε of the loss", "ε of the features", "d"),
        ),
    ),
    qualities=(Quality("sampled-100/hit", "Hit", SAMPLED, SAMPLED), _FULL_NDCG),
    utility=_FULL_NDCG,
    headline_k=10,
    open=("ease", "bpr"),
    emphasis=("gerai", "gcn", "bpr", "rap", "ease", "dp-popularity", "popularity"),
    validation="NDCG",
)

"""Tables and figures of DIPSGNN (Hu and Fang, arXiv 2309.11515, 2024).

The paper prints percent, our metrics are shares: printed numbers are divided by 100 wherever they stand beside ours.
"""

from __future__ import annotations

from tasks.reporting.core.published import NEXT, NEXT_NEW, Figure, Mode, Paper, Part, Quality, Table, Words, ranking
from tasks.reporting.core.results import BASE

DIGITS = 4
"""Shares of a percent decide here."""
OPEN = ("BPRMF", "SASRec", "HRNN", "LightGCN", "SRGNN", "APGNN")
"""The paper's baselines without privacy."""
PRIVATE = ("DPMF_imp", "DPMF_exp", "DPSGD", "EdgeRand")
"""Its baselines with privacy."""
GRAPHS = ("DIPSGNN", "EdgeRand")
EPSILON, FEATURES_EPSILON, STEPS = (3.0, 4.0, 5.0), (10.0, 20.0, 30.0), (1.0, 2.0, 3.0, 4.0, 5.0)
CLIP = (0.2, 0.4, 0.6, 0.8, 1.0)
"""What Figures 3 to 6 vary on ML-1M."""

_METHODS = {
    "BPRMF": "bprmf",
    "SASRec": "sasrec",
    "HRNN": "hrnn",
    "LightGCN": "lightgcn",
    "SRGNN": "srgnn",
    "APGNN": "apgnn",
    "DPMF_imp": "dpmf-implicit",
    "DPMF_exp": "dpmf-explicit",
    "DPSGD": "dpsgd",
    "EdgeRand": "edgerand",
    "DIPSGNN": "dipsgnn",
    "Nonp": "nonp",
    "Nonp-U": "nonp-u",
    "Priv": "dipsgnn",
    "Priv-U": "priv-u",
}
_RECALL = Quality("next/recall", "Recall", NEXT, "all items", DIGITS)


def _comparison(protocol: str, *, comparable: bool) -> Table:
    return Table(
        key="table2",
        name="Table 2",
        title="The next item after every prefix of the test sequences",
        note=(
            "Every item is a candidate, those of the prefix and of training among them (protocol next). Shares, not "
            "percent. Bold: the best of the systems whose ledger claims a budget for anything (best private), and the "
            "best of the others (best public)."
            if comparable
            else "Left out are items that the user had before, and the examples whose next item is one of them "
            "(protocol next-new). Shares, not percent."
        ),
        remark=(
            "The paper's percents are divided by 100."
            if comparable
            else "The paper prints no counterpart: these numbers must not be set beside its Table 2."
        ),
        methods=(*OPEN, *PRIVATE, "DIPSGNN"),
        parts=(
            Part(
                f"Recall and MRR, {protocol}",
                tuple(
                    ranking(metric, k, protocol, f"{label}@{k}", DIGITS)
                    for k in (20, 10)
                    for metric, label in (("recall", "Recall"), ("mrr", "MRR"))
                ),
            ),
        ),
        comparable=comparable,
        protocol=protocol,
        everyone=True,
        marked=True,
    )


def _swept(
    number: int,
    title: str,
    key: str,
    values: tuple[float, ...],
    default: float,
    methods: tuple[str, ...],
    note: str = "",
) -> Figure:
    return Figure(
        key=f"figure{number}",
        name=f"Figure {number}",
        title=title,
        method=" and ".join(methods),
        parameters=(key,),
        methods=methods,
        key_swept=key,
        values=values,
        default=default,
        note=note,
    )


DIPSGNN = Paper(
    key="dipsgnn",
    name="DIPSGNN",
    reference=(
        "W. Hu, H. Fang: Towards Differential Privacy in Sequential Recommendation: A Noisy Graph Neural Network "
        "Approach. arXiv 2309.11515, 2024."
    ),
    methods=_METHODS,
    protecting=(*PRIVATE, "DIPSGNN"),
    tables=(_comparison(NEXT, comparable=True), _comparison(NEXT_NEW, comparable=False)),
    figures=(
        _swept(3, "Budget of the interactions, ε2", "epsilon", EPSILON, 5.0, GRAPHS),
        _swept(4, "Budget of the features, ε1", "features_epsilon", FEATURES_EPSILON, 20.0, GRAPHS),
        _swept(
            5,
            "Steps of aggregation, T",
            "steps",
            STEPS,
            1.0,
            GRAPHS,
            "T = 0 is our control and not the paper's: no graph at all, so no interaction is aggregated and no noise "
            "added.",
        ),
        _swept(6, "Norm of the embeddings, C", "clip", CLIP, 0.2, ("DIPSGNN",)),
        Figure(
            key="figure7",
            name="Figure 7",
            title="With and without user features",
            method="DIPSGNN and its three ablations",
            parameters=(),
            methods=("Nonp", "Nonp-U", "Priv", "Priv-U"),
            note="Nonp has neither noise, Priv is DIPSGNN, and -U has the user's id in place of the features.",
        ),
    ),
    words=Words(splits="other draws of which users validate and of the order of events of the same time"),
    qualities=(_RECALL, Quality("next/mrr", "MRR", NEXT, "all items", DIGITS)),
    utility=_RECALL,
    headline_k=20,
    open=("apgnn", "srgnn", "hrnn", "sasrec", "lightgcn", "bprmf"),
    emphasis=("dipsgnn", "edgerand", "apgnn", "srgnn", "sasrec", "dp-popularity", "popularity"),
    validation="Recall",
    unit=0.01,
    apart=("bprmf", "lightgcn", "dpmf-implicit", "dpmf-explicit"),
    modes=(
        Mode("as published", "dipsgnn", BASE),
        Mode("as released, epoch chosen on validation", "dipsgnn-authors-code", BASE),
        Mode("rigorous", "dipsgnn-rigorous", BASE),
        Mode("one release per user, kept", "dipsgnn-cached", BASE),
        Mode("noisy visits, lists and all", "dipsgnn-released", BASE),
        Mode("no graph", "dipsgnn", "steps=0"),
    ),
    counted="Interactions are counted after sequences are cut, as in the paper; all else is before the cut.",
    statistics={
        "ml-1m": (
            "Two printed numbers disagree with the protocol that the paper describes. It prints 5,945 users; on all of "
            "ML-1M the protocol leaves 5,949, and the paper's released code has 5,949 too. Its average length of 96.07 "
            "is that of the 10-core, before sequences are cut to their last 100 events; its 365,535 interactions are "
            "counted after the cut, where the average is 61.4."
        )
    },
)

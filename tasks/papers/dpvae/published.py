"""Tables and figures of DP-VAE (Fang, Du and Wu, Knowledge-Based Systems, 2022).

Its Recall@R divides by min(|Q|, R): our `full/recall-reachable`. Rankings of its Tables 5 to 11 are versions of
methods, so each row names the values of a configuration that make ours this version. A printed "DP-VAE" is read as
follows: constant clip and standard prior in Table 5 and wherever "NUP", "CCB" or "NV" stand, both of its own devices
in Tables 8, 10 and "OV".
"""

from __future__ import annotations

from tasks.reporting.core.published import FULL, BudgetSweep, Column, Figure, Mode, Paper, Part, Quality, Table, Version
from tasks.reporting.core.results import BASE

STANDARD, USER = "prior=standard", "prior=user"
"""Of VAE, and of DP-VAE: the paper's NUP and ULP."""
NONE, CONSTANT, OPTIMAL = "privacy=none", "privacy=dpsgd", "privacy=dpsgd-optimal-clip"
"""Of the models of Table 11, and the two last of DP-VAE: OL, DP and DP-O; CCB and OCB."""
PLAIN, PRIORS = f"{STANDARD},{CONSTANT}", f"{USER},{CONSTANT}"
"""DP-VAE with neither device, and with user-level priors alone."""
CLIPPED, BOTH = f"{STANDARD},{OPTIMAL}", f"{USER},{OPTIMAL}"
"""DP-VAE with the optimal clip alone, and with both devices."""
BASELINES = ("KNN", "SVD", "LightFM", "DPMF", "DPAE")
"""Every method of Table 8 but the two autoencoders that DP-VAE is built on."""
COMPARED = ("DP-VAE", "KNN", "SVD", "LightFM", "VAE", "DPMF", "DPAE")
GENERALISED = ("SVD", "MF", "AE")
EPSILON_MAX = (0.3, 0.5, 1.0, 1.5)
RECALL = "full/recall-reachable"
NDCG = "full/ndcg"

_METHODS = {
    "DP-VAE": "dpvae",
    "KNN": "knn",
    "SVD": "svd",
    "LightFM": "lightfm",
    "VAE": "vae",
    "DPMF": "dpmf",
    "DPAE": "dpae",
    "MF": "mf",
    "AE": "ae",
}
COLUMNS = tuple(
    Column(
        group=group,
        label=f"{group}@{k}",
        setting="",
        published=f"{group.lower()}@{k}",
        metric=metric,
        k=k,
        protocol=FULL,
        better="higher",
    )
    for group, metric, k in (("NDCG", NDCG, 100), ("Recall", RECALL, 20), ("Recall", RECALL, 50))
)
_PARTS = (Part("NDCG@100, Recall@20 and Recall@50", COLUMNS),)
_NDCG = Quality(NDCG, "NDCG", FULL, "full ranking")


def _table(
    number: int,
    title: str,
    note: str,
    versions: tuple[Version, ...],
    remark: str = "",
    data: tuple[str, ...] = (),
) -> Table:
    return Table(
        key=f"table{number}",
        name=f"Table {number}",
        title=title,
        note=note,
        remark=remark,
        methods=tuple(dict.fromkeys(version.method for version in versions)),
        parts=_PARTS,
        versions=versions,
        data=data,
    )


def _constructed_versions(method: str) -> tuple[Version, Version]:
    system = _METHODS[method]
    ours = {"DP-VAE": PLAIN, "VAE": STANDARD}.get(method, BASE)
    return (
        Version(method, "data=original", "original data", f"{system}-original", ours),
        Version(method, "data=preprocessed", "pre-processed", system, ours),
    )


def _swept(value: float) -> Version:
    return Version("DP-VAE", f"epsilon_max={value:g}", f"ε_max = {value:g}", "dpvae", f"epsilon_max={value}")


DPVAE = Paper(
    key="dpvae",
    name="DP-VAE",
    reference=(
        "L. Fang, B. Du, C. Wu: Differentially private recommender system with variational autoencoders. "
        "Knowledge-Based Systems, 2022, doi 10.1016/j.knosys.2022.109044."
    ),
    methods=_METHODS,
    protecting=("DP-VAE", "DPMF", "DPAE"),
    tables=(
        _table(
            5,
            "Original and pre-processed data",
            "Pre-processed: every user's contribution is bounded. DP-VAE has a constant clip, and both it and VAE have "
            "the standard prior.",
            tuple(version for method in COMPARED for version in _constructed_versions(method)),
            "So the printed numbers agree with Tables 6, 7 and 9.",
            ("ml-20m", "netflix"),
        ),
        _table(
            6,
            "User-level priors",
            "NUP: standard normal prior; ULP: the prior of a user's metadata. DP-VAE has a constant clip here.",
            (
                Version("DP-VAE", "prior=standard", "NUP", "dpvae", PLAIN),
                Version("DP-VAE", "prior=user-level", "ULP", "dpvae", PRIORS),
                Version("VAE", "prior=standard", "NUP", "vae", STANDARD),
                Version("VAE", "prior=user-level", "ULP", "vae", USER),
            ),
        ),
        _table(
            7,
            "Optimal clipping bound",
            "CCB: constant clipping bound; OCB: the optimal one. Both have the standard prior.",
            (
                Version("DP-VAE", "clip=constant", "CCB", "dpvae", PLAIN),
                Version("DP-VAE", "clip=optimal", "OCB", "dpvae", CLIPPED),
            ),
        ),
        Table(
            key="table8",
            name="Table 8",
            title="Every method on the pre-processed data",
            note=(
                "Bold: the best of the systems whose ledger claims a budget for anything (best private), and the best "
                "of the others (best public)."
            ),
            remark=(
                "The paper's DP-VAE has user-level priors and the optimal clip. Systems below the paper's methods, and "
                "versions of DP-VAE counted rigorously, are ours alone."
            ),
            methods=COMPARED,
            parts=_PARTS,
            everyone=True,
            marked=True,
        ),
        _table(
            9,
            "Both devices together",
            "NV: neither user-level priors nor the optimal clip; OV: both.",
            (
                Version("DP-VAE", "version=plain", "NV", "dpvae", PLAIN),
                Version("DP-VAE", "version=optimised", "OV", "dpvae", BOTH),
            ),
            "Printed for ML-20M and Netflix alone. On ML-100K the paper's Table 6 has NDCG@100 0.42 with the priors "
            "alone, and its Table 8 0.41 with both.",
        ),
        _table(
            10,
            "The largest budget of a user, ε_max",
            "Every user draws an ε at random from (0, ε_max]. VAE has no privacy.",
            (Version("VAE", "", "", "vae", BASE), *(_swept(value) for value in EPSILON_MAX)),
        ),
        _table(
            11,
            "The optimal clip on other models",
            "OL: no privacy; DP: DP-SGD with a constant clip; DP-O: DP-SGD with the optimal clip.",
            tuple(
                Version(method, f"privacy={printed}", kind, _METHODS[method], ours)
                for method in GENERALISED
                for printed, kind, ours in (
                    ("none", "OL", NONE),
                    ("dpsgd", "DP", CONSTANT),
                    ("dpsgd-optimal-clip", "DP-O", OPTIMAL),
                )
            ),
        ),
    ),
    figures=(
        Figure(
            key="figure3",
            name="Figure 3",
            title="NDCG@R and Recall@R by length of the list, R",
            method="every method",
            parameters=("R",),
            methods=tuple(_METHODS),
            by_length=True,
            note="Recall@R divides by the smaller of R and the number of the user's test items, as in the paper.",
        ),
    ),
    qualities=(
        _NDCG,
        Quality(RECALL, "Recall", FULL, "full ranking", k=20),
        Quality(RECALL, "Recall", FULL, "full ranking", k=50),
    ),
    utility=_NDCG,
    headline_k=100,
    open=("vae", "ae", "svd", "knn", "lightfm", "mf"),
    emphasis=("dpvae", "dpvae-compact", "vae", "dpals", "dpvae-rigorous", "dp-popularity", "popularity"),
    validation="NDCG@100",
    modes=(
        Mode("as published", "dpvae", BASE),
        Mode("rigorous", "dpvae-rigorous", BASE),
        Mode("rigorous, compact", "dpvae-compact", BASE),
    ),
    statistics={
        "ml-100k": (
            "The paper says that its bound of 3 to 1,772 ratings preserves all of ML-100K. There are 209 films with "
            "one or two ratings there, so it cannot have left out items below the bound, as it says elsewhere that it "
            "does: here users alone are held to it."
        ),
        "ml-20m": "Users alone are held to the bound here, as ML-100K needs it; the paper left out items too.",
        "netflix": (
            "Of Netflix the paper draws around 70 million ratings at random in a way that it does not tell: single "
            "ratings drawn at random leave nearly all of the 480,189 users, not 311,266."
        ),
    },
    counted="Nothing printed stands beside generated data.",
    data_table="table2",
    settings_table="table3",
    settings_note=(
        "The printed numbers of parameters are those of I-h-2K and K-h-I with biases for h = 80 on ML-100K and 100 on "
        "the others, and for all items of the original data (26,744 of ML-20M, 17,770 of Netflix): not for the items "
        "that Table 2 says are left, of which there would be fewer."
    ),
    budget_sweeps=(
        BudgetSweep("dpvae", "epsilon_max"),
        BudgetSweep("dpvae-rigorous", "epsilon_max"),
        BudgetSweep("dpvae-compact", "epsilon_max"),
        BudgetSweep("dpals", "epsilon"),
        BudgetSweep("dp-popularity", "epsilon"),
    ),
    levels=("popularity", "vae"),
)

"""The table and the figure of a toy paper; its numbers are invented."""

from __future__ import annotations

from tasks.reporting.core.published import FULL, Figure, Paper, Part, Quality, Table, attack, ranking

METHODS = ("ToyRec", "MostPopular")
UTILITY = Quality("full/hit", "Hit", FULL, "full ranking")
TOY = Paper(
    key="toy",
    name="Toy",
    reference="A. Nobody: Toy Recommendation against Toy Attacks. Invented for a test.",
    methods={"ToyRec": "toy", "MostPopular": "popularity"},
    protecting=("MostPopular",),
    tables=(
        Table(
            key="table2",
            name="Table 2",
            title="Toy ranking",
            note="Invented numbers.",
            methods=METHODS,
            parts=(Part("Ranking", (ranking("hit", 5, FULL), ranking("hit", 10, FULL))),),
        ),
        Table(
            key="table3",
            name="Table 3",
            title="Toy attack",
            note="Invented numbers.",
            methods=METHODS,
            parts=(Part("Attribute inference", tuple(attack("colour", k, "toy") for k in (5, 10))),),
        ),
    ),
    figures=(
        Figure(
            key="figure1",
            name="Figure 1",
            title="Hit by length of the list",
            method="ToyRec",
            parameters=("K",),
            by_length=True,
        ),
    ),
    qualities=(UTILITY,),
    utility=UTILITY,
    headline_k=5,
    open=("toy",),
    emphasis=("toy",),
    validation="NDCG",
)

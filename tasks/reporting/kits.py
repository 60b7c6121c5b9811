"""What draws each paper's tables and figures, and what it claims: one entry per paper, as in `papers`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tasks.reporting import (
    claims_dipsgnn,
    claims_dpcrosue,
    claims_dpvae,
    claims_gerai,
    claims_privsr,
    curves,
    data_statistics,
    dpcrosue_figures,
    dpvae_figures,
    gerai_figures,
    layout,
    networks,
    next_figures,
    preparation,
    privsr_figures,
)
from tasks.reporting.chart import Chart
from tasks.reporting.claim_specs import Claim, Spec
from tasks.reporting.published import Figure, Table
from tasks.reporting.results import Results


@dataclass(frozen=True)
class Kit:
    """What a paper's report needs beside its description."""

    tables: dict[str, Callable[[Results, Table, int], Chart]]
    """Anchor of a table -> what draws it, at a cut-off where the paper names none."""
    figures: dict[str, Callable[[Results, Figure, int], Chart]]
    """Key of a figure -> what draws it."""
    claims: Callable[[Results, int], tuple[list[Spec], list[Claim]]]
    """The claims that tests decide, and those already judged."""
    elsewhere: bool = False
    """Whether claims are also tested on data of which the paper prints nothing."""
    statistics: Callable[[Results], layout.Table | None] = data_statistics.table
    """The paper's statistics of the data."""
    settings: Callable[[Results], layout.Table | None] | None = None
    """The settings of its method; None where they are not shown."""
    lacking: Callable[[Results], dict[str, list[str]]] | None = None
    """Key of a table or figure -> why these data cannot give it, or a part of it; None where they all can."""


KITS = {
    "gerai": Kit(
        tables={
            "table2": gerai_figures.attacks,
            "table3": curves.ranking,
            "table3-full": curves.ranking,
            "table4": gerai_figures.ablation,
            "table5": gerai_figures.attackers,
        },
        figures={"figure2": gerai_figures.swept_figure},
        claims=claims_gerai.claims,
    ),
    "dipsgnn": Kit(
        tables={"table2": curves.ranking, "table2-next-new": curves.ranking},
        figures={
            "figure3": next_figures.swept_figure,
            "figure4": next_figures.swept_figure,
            "figure5": next_figures.swept_figure,
            "figure6": next_figures.swept_figure,
            "figure7": next_figures.versions,
        },
        claims=claims_dipsgnn.claims,
        elsewhere=True,
    ),
    "dpvae": Kit(
        tables={
            "table5": dpvae_figures.versions,
            "table6": dpvae_figures.versions,
            "table7": dpvae_figures.versions,
            "table8": dpvae_figures.versions,
            "table9": dpvae_figures.versions,
            "table10": dpvae_figures.budgets,
            "table11": dpvae_figures.versions,
        },
        figures={"figure3": dpvae_figures.lengths},
        claims=claims_dpvae.claims,
        statistics=preparation.statistics,
        settings=preparation.settings,
    ),
    "privsr": Kit(
        tables={},
        figures={
            "figure3": privsr_figures.by_share,
            "figure4": privsr_figures.by_share,
            "figure5": privsr_figures.by_parameter,
        },
        claims=claims_privsr.claims,
        statistics=data_statistics.network,
    ),
    "dpcrosue": Kit(
        tables={
            "table2": dpcrosue_figures.ratios,
            "table3": dpcrosue_figures.scores,
            "table4": dpcrosue_figures.crossed,
            "table5": dpcrosue_figures.nothing,
        },
        figures={"figure3": dpcrosue_figures.budgets},
        claims=claims_dpcrosue.claims,
        statistics=networks.statistics,
        lacking=networks.lacking,
    ),
}
"""Key of a paper -> its kit."""

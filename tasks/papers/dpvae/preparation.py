"""DP-VAE's Tables 2 and 3: the data before and after its protocol, and the settings of its network."""

from __future__ import annotations

from tasks.reporting.core import comparison
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, group_digits, missing_cell, number
from tasks.reporting.core.results import Processed, Results, System
from tasks.reporting.core.sweeps import as_number
from tasks.results.claims import Verdict

ATTRIBUTES = {"users": "Users", "items": "Items", "ratings": "Ratings", "sparsity": "Sparsity (%)"}
"""`metric` in paper_tables.csv -> how it is shown."""
STAGES = {"original": "Original", "preprocessed": "Pre-processed"}
"""`setting` in paper_tables.csv -> how it is shown."""
ORIGINAL = ("published", "sampled")
"""Steps of the protocol after which the paper counts the original data; of Netflix, the sample that it drew."""
SETTINGS = {
    "batch_size": ("Batch size, users", "batch_size"),
    "epochs": ("Epochs", "epochs"),
    "beta": ("β", "beta"),
    "latent_dim": ("Latent dimension", "dimension"),
}
"""`metric` in paper_tables.csv -> how it is shown, and the key of the configuration."""
SHOWN = ("dpvae", "dpvae-rigorous", "dpvae-compact")
"""Labels of the systems whose settings are shown; the first answers to the printed ones."""
PARAMETERS = "parameters"
NO_METADATA = (
    "user-level priors: nothing is known of these users, and priors by categories of what a user has seen, which the "
    "paper names among its examples of metadata, are not built; it does not say what it took there"
)
WITH_PRIORS = ("table6", "table9")
"""Tables that have user-level priors."""


def statistics(results: Results) -> Table:
    """Table 2: users, items, ratings and sparsity before and after."""
    paper = results.reproduced
    printed = {} if paper is None else comparison.printed_values(results, paper)
    ours = our_counts(results.processed)
    published = {
        (stage, name): printed.get(("table2", comparison.STATISTICS, stage, name))
        for stage in STAGES
        for name in ATTRIBUTES
    }
    with_paper = any(value is not None for value in published.values())
    rows = []
    for name, label in ATTRIBUTES.items():
        digits = 2 if name == "sparsity" else 0
        cells = []
        for stage in STAGES:
            cells += _cells(ours[stage][name], published[stage, name], digits, with_paper=with_paper)
        rows.append(Row(label, cells))
    headings = ["", *(["ours", *(["paper", "difference"] if with_paper else [])] * len(STAGES))]
    return Table(
        f"{'Table 2, s' if paper else 'S'}tatistics of {results.origin}",
        [Heading(text, NUMBER if place else "") for place, text in enumerate(headings)],
        rows,
        groups=[(label, 3 if with_paper else 1) for label in STAGES.values()],
    )


def settings(results: Results) -> Table | None:
    """Table 3: the settings of DP-VAE's network and its number of parameters; None where it was not run."""
    systems = [(name, system) for name in SHOWN if (system := results.find(name)) is not None and system.label == name]
    if not systems or systems[0][0] != SHOWN[0]:
        return None
    paper = results.reproduced
    printed = {} if paper is None else comparison.printed_values(results, paper)
    published = {name: printed.get(("table3", "DP-VAE", "", name)) for name in (*SETTINGS, PARAMETERS)}
    with_paper = any(value is not None for value in published.values())
    rows = []
    for name in (*SETTINGS, PARAMETERS):
        label, key = SETTINGS.get(name, ("Number of parameters", ""))
        values = [system.config.get(key) if key else parameters(results, system) for _, system in systems]
        numbers = [as_number(value) for value in values]
        digits = 1 if name == "beta" else 0
        cells = [_cells(value, None, digits, with_paper=False)[0] for value in numbers]
        if with_paper:
            cells[1:1] = _cells(numbers[0], published[name], digits, with_paper=True)[1:]
        rows.append(Row(label, cells))
    headings = ["", systems[0][0], *(["paper", "difference"] if with_paper else []), *(name for name, _ in systems[1:])]
    return Table(
        f"{'Table 3, s' if paper else 'S'}ettings of the network",
        [Heading(text, NUMBER if place else "") for place, text in enumerate(headings)],
        rows,
    )


def counts(results: Results) -> list[comparison.Count]:
    """Tables 2 and 3 as numbers: of the data before and after, and of the network of the first of `SHOWN`."""
    counted = [
        comparison.Count("table2", name, value, setting=stage)
        for stage, of_stage in our_counts(results.processed).items()
        for name, value in of_stage.items()
    ]
    system = results.find(SHOWN[0])
    if system is None or system.label != SHOWN[0]:
        return counted
    ours = {name: as_number(system.config.get(key)) for name, (_, key) in SETTINGS.items()}
    ours |= {PARAMETERS: as_number(parameters(results, system))}
    return counted + [comparison.Count("table3", name, value, method="DP-VAE") for name, value in ours.items()]


def missing_artefacts(results: Results) -> dict[str, list[str]]:
    """Key of a table -> why these data cannot give a part of it."""
    if results.reproduced is None or results.processed.features:
        return {}
    return {key: [NO_METADATA] for key in WITH_PRIORS}


def preserved(results: Results) -> tuple[Verdict, str]:
    """Whether the bound leaves all of the original data: no run is needed."""
    first, last = our_counts(results.processed).values()
    left = ", ".join(f"{last[name]:,.0f} of {first[name]:,.0f} {name}" for name in ("users", "items", "ratings"))
    return (
        "supported" if first == last else "contradicted",
        f"Held to users alone, it leaves {left}. Omitting items too, as section 4.1.1 says, would take out those with "
        "one or two ratings.",
    )


def our_counts(processed: Processed) -> dict[str, dict[str, float]]:
    """Stage of `STAGES` -> attribute of `ATTRIBUTES` -> ours; sparsity is 1 - R / (U I) in percent (Eq. 21)."""
    first = [count for count in processed.counts if count["step"] in ORIGINAL] or list(processed.counts[:1])
    return {
        stage: {
            "users": count["users"],
            "items": count["items"],
            "ratings": count["interactions"],
            "sparsity": 100 * (1 - count["interactions"] / (count["users"] * count["items"])),
        }
        for stage, count in (("original", first[-1]), ("preprocessed", processed.counts[-1]))
        if count["users"] and count["items"]
    }


def n_parameters(n_items: int, hidden: int, latent: int) -> int:
    """Weights and biases of I → h → (μ, log σ²) and K → h → I."""
    encoder = n_items * hidden + hidden + hidden * 2 * latent + 2 * latent
    decoder = latent * hidden + hidden + hidden * n_items + n_items
    return encoder + decoder


def parameters(results: Results, system: System) -> int | None:
    """Of a system's network, by its configuration; None where that does not say its sizes."""
    config = system.config
    hidden, latent = config.get("hidden"), config.get("dimension")
    if hidden is None or latent is None:
        return None
    return n_parameters(int(results.processed.counts[-1]["items"]), int(hidden), int(latent))


def _cells(value: float | None, published: float | None, digits: int, *, with_paper: bool) -> list[Cell]:
    """Ours, and beside the paper its number and the difference."""
    cells = [missing_cell("not told") if value is None else Cell(group_digits(value, digits))]
    if with_paper:
        cells.append(missing_cell() if published is None else Cell(group_digits(published, digits)))
        known = value is not None and published is not None
        cells.append(Cell(_difference(value - published, digits)) if known else missing_cell())  # type: ignore[operator]
    return cells


def _difference(value: float, digits: int) -> str:
    text = f"{value:+,.{digits}f}".replace("-", "−")
    return number(0.0, digits) if float(f"{value:.{digits}f}") == 0 else text

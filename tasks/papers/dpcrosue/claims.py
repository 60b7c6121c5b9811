"""Which networks DP-CroSUE's claims are tested on, and with which network without noise they are compared."""

from __future__ import annotations

from tasks.results.printed import Against


def numbers(against: Against) -> dict[str, object]:
    """Names for the rows of claims.

    Returns:
        known: networks whose friendships, interests and attributes are known; titles: theirs; true: R-GCN on what
            DP-R-GCN reads, without texts where no text is perturbed.
    """
    results, private = against.results, against.find("dp-rgcn")
    networks = results.suite.networks
    known = [network for network in networks if network.friendships and network.labelled and network.sensitive]
    texts = private is None or any(
        line.experiment == private.experiment and line.entry.protects == "text" for line in results.lines
    )
    without = against.find("rgcn-text-free")
    titles = ", ".join(network.name.capitalize() for network in known)
    return {"known": known, "titles": titles, "true": "R-GCN" if texts or without is None else "R-GCN without texts"}


def friendships(against: Against) -> tuple[float, dict[str, float]]:
    """Whether IONE's networks have the friendships that Table 1 prints, to within one: no run is needed.

    Returns:
        by how much the worst is within one and a half, and what is counted and printed of each network.
    """
    rows = against.results.published.filter(paper="dpcrosue", artefact="table1", metric="friendships")
    printed = dict(rows.select("dataset", "value").iter_rows())
    counted = {network.name: float(network.friendships) for network in against.results.suite.networks}
    margin = min(1.5 - abs(printed[name] - number) for name, number in counted.items())
    values = {
        f"{name}-{kind}": table[name]
        for name in counted
        for kind, table in (("counted", counted), ("printed", printed))
    }
    return margin, values

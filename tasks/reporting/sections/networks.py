"""A pair of networks: its statistics beside the paper's, and what of the paper it cannot give."""

from __future__ import annotations

from tasks.reporting.core import comparison
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, format_difference, join_words, missing_cell
from tasks.reporting.core.results import Results
from tasks.results import paper as published

COUNTED = ("users", "posts", "friendships")
"""What is counted of each network, as the paper calls it."""
WRITES = "writes"
"""What the paper calls posts once more: who wrote them."""


def statistics(results: Results) -> Table | None:
    """Users, posts and friendships of both networks, and anchors; None where the data are no pair."""
    if not results.networks:
        return None
    paper = results.reproduced
    compared = paper is not None and comparison.is_printed(results, paper)
    *counted, anchors = [count for count in counts(results) if count.metric != WRITES]
    titles = {network.name: network.title for network in results.networks}
    rows = [
        count_row(f"{titles[count.data]}: {count.metric}", count.ours, count.printed(results), compared)
        for count in counted
    ]
    rows.append(count_row("Anchors", results.anchors, anchors.printed(results), compared))
    headings = ["count", "ours", *(["paper", "difference"] if compared else [])]
    return Table(
        f"{comparison.statistics_title(results)}; a post is also a write relation",
        [Heading(text, NUMBER if place else "") for place, text in enumerate(headings)],
        rows,
    )


def counts(results: Results) -> list[comparison.Count]:
    """Users, posts, who wrote them and friendships of each network, and anchors last; None of what is not public."""
    if not results.networks:
        return []
    layout, counted = results.layout, list[comparison.Count]()
    for network in results.networks:
        ours = {name: getattr(network, name) or None for name in COUNTED}
        ours |= {WRITES: ours["posts"]}
        counted += [comparison.Count(layout.data_table, name, value, data=network.name) for name, value in ours.items()]
    both = layout.joined(tuple(network.name for network in results.networks)) or results.origin
    return [*counted, comparison.Count(layout.data_table, "anchor_users", results.anchors, data=both)]


def steps(results: Results) -> Table | None:
    """What is published of each network; None where the data are no pair."""
    if not results.networks:
        return None
    rows = [
        Row(
            network.title,
            [
                _known_cell(bool(network.friendships)),
                _known_cell(network.attributed),
                Cell({"posts": "posts", "vectors": "one vector for each user", "none": "no"}[network.texts], kind=""),
                _known_cell(network.labelled),
                Cell(join_words(network.sensitive) or "none", kind=""),
            ],
        )
        for network in results.networks
    ]
    headings = ["Network", "friendships", "attributes", "texts", "interests", "sensitive attributes"]
    return Table("What is known of the users of each network", [Heading(text, "") for text in headings], rows)


def missing_artefacts(results: Results) -> dict[str, list[str]]:
    """Key of a table or figure -> why these data cannot give it, or a part of it; nothing on generated data."""
    paper = results.reproduced
    if paper is None or not results.networks:
        return {}
    reasons_by_key: dict[str, list[str]] = {}
    described: list[published.Table | published.Figure] = [*paper.tables, *paper.figures]
    for shown in described:
        methods = shown.methods if isinstance(shown, published.Table) else shown.drawn
        needing_both = [name for name in methods if name in paper.joint]
        reasons_by_key[shown.key] = [*_networks(results, shown.needs), *_methods(results, needing_both, shown.words)]
    return {key: reasons for key, reasons in reasons_by_key.items() if reasons}


def _networks(results: Results, needs: tuple[published.Need, ...]) -> list[str]:
    """Per network without a part in the table: what is not published of it."""
    reasons = []
    for network in results.networks:
        without = []
        if not network.friendships:
            without.append("friendships (without which nothing is embedded)")
        if "interests" in needs and not network.labelled:
            without.append("interests")
        if "attributes" in needs and not network.sensitive:
            without.append("gender and occupation")
        if without:
            reasons.append(f"{network.title}, because the data lack its users' {join_words(without)}.")
    return reasons


def _methods(results: Results, names: list[str], words: str) -> list[str]:
    """What of a table the data cannot give, where some network has a part in it: methods that need both, and words."""
    able = [network for network in results.networks if network.friendships and network.labelled]
    if not able:
        return []
    layout, reasons = results.layout, list[str]()
    if names and not any(results.find(layout.methods[name]) for name in names) and len(able) < 2:
        reasons.append(
            f"{join_words(names)}, because {'it embeds' if len(names) == 1 else 'they embed'} both networks and the "
            f"data have friendships of {join_words([of.title for of in results.networks if of.friendships])} alone."
        )
    if words and all(network.texts != "posts" for network in able):
        had = "one vector for each user" if any(network.texts == "vectors" for network in able) else "nothing"
        reasons.append(f"{words}, because the data have of texts {had} and no words that could be replaced.")
    return reasons


def _known_cell(there: bool) -> Cell:
    return Cell("yes" if there else "no", kind="")


def count_row(name: str, ours: float | None, theirs: float | None, compared: bool) -> Row:
    """A count beside the printed one, None where it is not known; `compared`: whether any of the table is printed."""
    cells = [_count_cell(ours)]
    if compared or theirs is not None:
        difference = missing_cell()
        if ours is not None and theirs is not None:
            share = f"{format_difference(100 * (ours / theirs - 1), 1)} %"
            difference = Cell(f"{ours - theirs:+,.0f}".replace("-", "−"), (share,))
        cells += [_count_cell(theirs), difference]
    return Row(name, cells)


def _count_cell(value: float | None) -> Cell:
    return missing_cell() if value is None else Cell(f"{value:,.0f}")

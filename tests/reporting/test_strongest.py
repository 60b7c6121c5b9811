"""Link stealing in sentences: the best score of a system beside the best one of each control."""

from __future__ import annotations

from tasks.reporting.sections import strongest, verdicts
from tasks.reporting.sections.verdicts import Line
from tests.reporting import example_dpcrosue
from tests.reporting.committed import read
from tests.reporting.example_dpcrosue import shifted


def test_friendships_are_told_beside_the_best_control() -> None:
    full, bare = example_dpcrosue.full(), example_dpcrosue.ione()
    assert all("from the vectors of 13 of 14 systems" in sentence for sentence in strongest.sentences(full))
    weak = bare
    for scorer in ("hadamard", "dot", "cosine"):
        weak = shifted(weak, "deepwalk", f"twitter/links/{scorer}/auc", -0.5)
    foursquare, twitter = strongest.sentences(weak)
    assert foursquare.endswith("they are told better than by every control from the vectors of deepwalk.")
    assert twitter.endswith("from the vectors of no system.")


def test_a_control_that_one_score_cannot_see_is_seen_by_another() -> None:
    bare = example_dpcrosue.ione()
    seen = shifted(bare, "degree", "twitter/links/dot/auc", 0.45)
    foursquare, twitter = strongest.sentences(seen)
    assert foursquare.endswith("from the vectors of deepwalk.")
    assert twitter.endswith("from the vectors of no system.")
    assert "; degree alone: " in twitter
    assert " alone: 0." in strongest.lead(seen)


def test_friendships_that_a_control_tells_as_well_are_no_alarm() -> None:
    bare = example_dpcrosue.ione()
    assert strongest.leaks(bare)
    weak = bare
    for network in ("foursquare", "twitter"):
        for scorer in ("hadamard", "dot", "cosine"):
            weak = shifted(weak, "deepwalk", f"{network}/links/{scorer}/auc", -0.5)
    assert not strongest.leaks(weak)
    assert strongest.lead(weak).endswith(", no better than the control.")
    assert "no better" not in strongest.lead(bare)


def test_accounts_that_are_matched_without_an_anchor_are_an_alarm() -> None:
    def line(suite: str) -> Line:
        results, _, claims = read(suite)
        return next(line for line in verdicts.verdicts(results, claims, 10) if line.topic == "Re-identification")

    assert line("dpcrosue").alarm
    assert not line("dpcrosue-ione").alarm

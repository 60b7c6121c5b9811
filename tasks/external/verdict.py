"""The verdict: which leaks are shown, in words that can be repeated, and the exit code.

All tests of an audit together raise a false alarm with a probability of at most `ALPHA` (Holm's correction). The bound
by canaries has a confidence of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tasks.evaluation.statistics import holm
from tasks.external.findings import Answer, Attack, Canaries, Measure, Verdict

ALPHA = 0.05


def decide(answers: Sequence[Answer], canaries: Canaries | None) -> tuple[list[Answer], Verdict]:
    """The answers with corrected p-values, states and sentences; and the verdict."""
    tested = [attack.p for answer in answers for attack in answer.attacks if attack.p is not None]
    corrected = iter(holm(tested))
    decided = []
    for answer in answers:
        attacks = [
            attack
            if attack.p is None
            else attack.model_copy(update={"p_corrected": (p := next(corrected)), "shown": p <= ALPHA})
            for attack in answer.attacks
        ]
        decided.append(_decide(answer.model_copy(update={"attacks": attacks})))
    sentences = [answer.sentence for answer in decided]
    leak = any(answer.state == "shown" for answer in decided)
    if canaries is not None:
        sentences.append(_of_canaries(canaries))
        leak |= canaries.claim == "refuted" or (canaries.claimed is None and canaries.epsilon > 0)
    return decided, Verdict(exit_code=3 if leak else 0, sentences=sentences)


def _decide(answer: Answer) -> Answer:
    if answer.state == "cannot be decided":
        return answer.model_copy(update={"sentence": f"{_SUBJECT[answer.question](answer)}: {answer.sentence}."})
    if not answer.attacks:
        why = f"{_SUBJECT[answer.question](answer)}: no attack has enough to work on."
        return answer.model_copy(update={"state": "cannot be decided", "sentence": why})
    shown = any(attack.shown for attack in answer.attacks)
    best = min(answer.attacks, key=lambda attack: (attack.p or 0.0, -attack.measures[0].value))
    sentence = (_SHOWN if shown else _NOT_SHOWN)[answer.question](answer, best)
    return answer.model_copy(update={"state": "shown" if shown else "not shown", "sentence": sentence})


_SUBJECT = {
    "attributes": lambda answer: f"Whether the lists reveal {answer.subject} cannot be decided",
    "own items": lambda _: "Whether lists repeat training data cannot be decided",
    "users": lambda _: "Membership of users cannot be decided",
    "interactions": lambda _: "Membership of interactions cannot be decided",
    "held-back ratings": lambda _: "Reconstruction of held-back ratings cannot be decided",
    "links": lambda _: "Whether embeddings reveal links cannot be decided",
    "re-identification": lambda _: "Re-identification cannot be decided",
}
_SHOWN = {
    "attributes": lambda answer, best: (
        f"The lists reveal {answer.subject} beyond the ratings: {best.name} is right about {_rate(best, 0)} of users; "
        f"it gains {_points(best.measures[1])} over the ratings alone."
    ),
    "own items": lambda _, best: (
        f"The lists show what their users were trained on: {_rate(best, 0)} of listed items are in their user's "
        f"training data; of those in lists of other users, {_share(best.controls[0])}."
    ),
    "users": lambda _, best: f"Membership of users is revealed: {_rates(best)}.",
    "interactions": lambda _, best: f"Membership of interactions is revealed: {_rates(best)}.",
    "held-back ratings": lambda _, best: (
        f"Held-back ratings can be reconstructed better than from the ratings alone: root mean square error "
        f"{best.measures[0].value:.3f} instead of {best.controls[0].value:.3f}."
    ),
    "links": lambda _, best: f"Links are revealed beyond the controls: {_rates(best)}.",
    "re-identification": lambda _, best: (
        f"Accounts are re-identified in the other network: {best.name} names {_rate(best, 0)} of people rightly."
    ),
}
_NOT_SHOWN = {
    "attributes": lambda answer, best: (
        f"Nothing here shows that the lists reveal {answer.subject} beyond the ratings ({best.name} gains "
        f"{_points(best.measures[1])})."
    ),
    "own items": lambda _, best: (
        "Nothing here shows that lists repeat their users' training data more than other users' lists do "
        f"({_share(best.measures[0])} beside {_share(best.controls[0])} of listed items)."
    ),
    "users": lambda _, best: f"Nothing here shows that membership of users is revealed ({_rates(best)}).",
    "interactions": lambda _, best: f"Nothing here shows that membership of interactions is revealed ({_rates(best)}).",
    "held-back ratings": lambda _, best: (
        "Nothing here shows that held-back ratings can be reconstructed better than from the ratings alone (root mean "
        f"square error {best.measures[0].value:.3f} beside {best.controls[0].value:.3f})."
    ),
    "links": lambda _, best: f"Nothing here shows that embeddings reveal links beyond the controls ({_rates(best)}).",
    "re-identification": lambda _, best: (
        f"Nothing here shows that accounts can be re-identified beyond the controls ({best.name} names "
        f"{_rate(best, 0)} of people rightly)."
    ),
}


def _of_canaries(canaries: Canaries) -> str:
    at = f"at {canaries.confidence:.0%} confidence, δ = {canaries.delta:g}"
    limit = f"{canaries.canaries} canaries could have proved {canaries.provable:.2f} at most"
    if canaries.claim == "refuted":
        return (
            f"The claimed ε = {canaries.claimed:g} is refuted: it is at least {canaries.epsilon:.2f} ({at}; {limit})."
        )
    if canaries.claim == "inconclusive":
        return f"The canaries cannot decide the claimed ε = {canaries.claimed:g}: {limit} ({at})."
    proved = f"prove ε ≥ {canaries.epsilon:.2f}" if canaries.epsilon > 0 else "prove nothing of ε"
    claim = f", which does not refute the claimed ε = {canaries.claimed:g}" if canaries.claimed is not None else ""
    return f"The canaries {proved}{claim} ({at}; {limit})."


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %".replace("-", "−")


def _share(measure: Measure) -> str:
    return _percent(measure.value)


def _rate(attack: Attack, place: int) -> str:
    measure = attack.measures[place]
    return f"{_percent(measure.value)} ({_interval(measure)})"


def _interval(measure: Measure) -> str:
    assert measure.low is not None
    assert measure.high is not None
    return f"interval {100 * measure.low:.1f} to {100 * measure.high:.1f}".replace("-", "−")


def _points(measure: Measure) -> str:
    return f"{100 * measure.value:.1f} points ({_interval(measure)})".replace("-", "−")


def _rates(best: Attack) -> str:
    auc, *rates = best.measures
    low = "".join(
        f", {rate.name.replace('TPR', f'TPR {_percent(rate.value)}')} ({_interval(rate)})" for rate in rates[:1]
    )
    return f"{best.name}: AUC {auc.value:.3f} (interval {auc.low:.3f} to {auc.high:.3f}){low}"

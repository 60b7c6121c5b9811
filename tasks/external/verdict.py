"""The verdict: which leaks are shown, in words that can be repeated, and the exit code.

All tests of an audit together raise a false alarm with a probability of at most `ALPHA` (Holm's correction). The bound
by canaries has a confidence of its own. A question that could not be decided is no answer: see `exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tasks.evaluation.statistics import holm
from tasks.external.findings import Answer, Attack, Canaries, Measure, Verdict

ALPHA = 0.05


def decide(answers: Sequence[Answer], canaries: Canaries | None, allow_undecided: bool) -> tuple[list[Answer], Verdict]:
    """The answers with corrected p-values, states and sentences; and the verdict.

    Its exit code is 3 where a leak is shown or a claim refuted, else 4 where a question could not be decided (0 if that
    is allowed), else 0.
    """
    # equal numbers are one test: an attribute that is given twice, or an attack that ranks all as another does
    tested = {_test(answer, attack): attack.p for answer in answers for attack in answer.attacks}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    decided = []
    for answer in answers:
        attacks = [
            attack.model_copy(update={"p_corrected": (p := corrected[_test(answer, attack)]), "shown": p <= ALPHA})
            for attack in answer.attacks
        ]
        decided.append(_decide(answer.model_copy(update={"attacks": attacks})))
    sentences = [answer.sentence for answer in decided]
    states = [answer.state for answer in decided]
    if canaries is not None:
        sentences.append(_of_canaries(canaries))
        states.append(canaries.state)
    shown, answered = states.count("shown"), len(states) - states.count("cannot be decided")
    first = f"Leaks shown: {shown}. Questions answered: {answered} of {len(states)}."
    return decided, Verdict(
        exit_code=3 if shown else 4 if answered < len(states) and not allow_undecided else 0,
        questions=len(states),
        answered=answered,
        shown=shown,
        sentences=[first, *sentences],
    )


def _test(answer: Answer, attack: Attack) -> tuple[object, ...]:
    return answer.question, attack.p, *((measure.value, measure.low, measure.high) for measure in attack.measures)


def _decide(answer: Answer) -> Answer:
    if answer.state == "cannot be decided":
        return answer.model_copy(update={"sentence": f"{_SUBJECT[answer.question](answer)}: {answer.sentence}."})
    if not answer.attacks:
        why = f"{_SUBJECT[answer.question](answer)}: no attack has enough to work on."
        return answer.model_copy(update={"state": "cannot be decided", "sentence": why})
    shown = any(attack.shown for attack in answer.attacks)
    best = min(answer.attacks, key=lambda attack: (attack.p, -attack.measures[0].value))
    sentence = (_SHOWN if shown else _NOT_SHOWN)[answer.question](answer, best)
    sentence = f"{sentence[:-1]}; adjusted p = {best.p_corrected:.2g}."
    state = "shown" if shown else "not shown"
    return answer.model_copy(update={"state": state, "sentence": sentence, "decided_by": best.name})


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
        f"The lists show what their users were trained on: {_rate(best, 0)} of training items are in their user's "
        f"list; of held-back items of the same users, {_percent(best.controls[0].value)}."
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
        "Nothing here shows that lists have more of their users' training items than of their held-back items "
        f"({_percent(best.measures[0].value)} and {_percent(best.controls[0].value)} of them are listed)."
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
    limit = f"{canaries.canaries} canaries could have proved {canaries.provable:.2f} at most"
    if canaries.correct == canaries.guesses > 0:
        limit += ", and all guesses were right: more --count, --canary-count or --runs can prove more"
    proved = f"prove ε ≥ {canaries.epsilon:.2f}" if canaries.epsilon > 0 else "prove nothing of ε"
    at = f"at {canaries.confidence:.0%} confidence, δ = {canaries.delta:g}"
    control = "none was audited (--control, --control-command)"
    if canaries.control is not None:
        control = f"ε ≥ {canaries.control:.2f} is proved of it"
    claim = "" if canaries.claimed is None else f" The claimed ε = {canaries.claimed:g} is {canaries.claim}."
    power = "" if canaries.claim in ("none", "refuted") else f" Control without protection: {control}."
    return f"The canaries {proved} ({at}; {limit}).{claim}{power}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %".replace("-", "−")


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

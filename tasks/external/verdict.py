"""The verdict: which leaks are shown, and the exit code; its words are in templates/sentences.txt.j2.

All tests of an audit together raise a false alarm with a probability of at most `ALPHA` (Holm's correction). The bound
by canaries has a confidence of its own. A question that could not be decided is no answer: see `exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tasks.evaluation.statistics import holm
from tasks.external.findings import Answer, Attack, Canaries, State, Verdict
from tasks.external.folders import TEMPLATES
from tasks.pages.page import environment

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
    sentences, states = [answer.sentence for answer in decided], [answer.state for answer in decided]
    if canaries is not None:
        sentences.append(_sentence("canaries", c=canaries))
        states.append(canaries.state)
    leaks, answered = states.count("shown"), sum(state != "cannot be decided" for state in states)
    first = _sentence("summary", shown=leaks, answered=answered, questions=len(states))
    return decided, Verdict(
        exit_code=3 if leaks else 4 if answered < len(states) and not allow_undecided else 0,
        questions=len(states),
        answered=answered,
        shown=leaks,
        sentences=[first, *sentences],
    )


def _test(answer: Answer, attack: Attack) -> tuple[object, ...]:
    return answer.question, attack.p, *((measure.value, measure.low, measure.high) for measure in attack.measures)


def _decide(answer: Answer) -> Answer:
    if answer.state == "cannot be decided" or not answer.attacks:
        sentence = _sentence(answer.question, state="cannot be decided", subject=answer.subject, why=answer.sentence)
        return answer.model_copy(update={"state": "cannot be decided", "sentence": sentence})
    state: State = "shown" if any(attack.shown for attack in answer.attacks) else "not shown"
    best = min(answer.attacks, key=lambda attack: (attack.p, -attack.measures[0].value))
    sentence = _sentence(answer.question, state=state, subject=answer.subject, best=best)
    return answer.model_copy(update={"state": state, "sentence": sentence, "decided_by": best.name})


def _sentence(about: str, **slots: object) -> str:
    template = environment(TEMPLATES).get_template("sentences.txt.j2")
    return Markup(template.render(about=about, **{"best": None, "why": ""} | slots)).unescape().strip()

"""The card of one system of a suite in the form of others, for `dprec card`: from data/results/ alone."""

from __future__ import annotations

from datetime import date
from typing import Literal, get_args

from tasks.errors import ConfigurationError
from tasks.pages import exports
from tasks.results.budgets import budgets
from tasks.results.cards import Card, Loss, card
from tasks.results.standings import measure
from tasks.stages.report import collected, paper_of, results_of

Form = Literal["opendp", "cyclonedx"]


def export(suite: str, experiment: str, form: str) -> str:
    """JSON of the form.

    Raises:
        ConfigurationError: there are no results of such a suite, no such private system in it, or no such form.
    """
    if form not in get_args(Form):
        raise ConfigurationError(f"--format {form}: none of {', '.join(get_args(Form))}")
    if suite not in collected():
        raise ConfigurationError(f"{suite}: no results of such a suite (have {', '.join(collected())})")
    results = results_of(suite)
    by, spent = measure(results, paper_of(results)), budgets(results)
    cards = {system.experiment: card(results, system, by, spent) for system in results.suite.compared}
    known = {name: each for name, each in cards.items() if _private(each)}
    if experiment not in known:
        raise ConfigurationError(f"{experiment}: no private system of {suite} (have {', '.join(known)})")
    made = known[experiment]
    private = _private(made)
    loss = next((loss for loss in private if loss.privacy_parameters is not None), private[0])
    if form == "opendp":
        return exports.opendp("opendp.json.j2", {"card": made, "loss": loss}, date.today().isoformat())
    parameters = loss.privacy_parameters
    properties = {
        "unit": loss.level,
        "epsilon": "infinite" if parameters is None else parameters.epsilon,
        "delta": None if parameters is None else parameters.delta,
        "claimed-epsilon": loss.claimed,
        "audited-epsilon": None if loss.audit is None else loss.audit.epsilon,
        "data": made.basic.kind,
    }
    return exports.cyclonedx(f"{suite}/{experiment}", properties)


def _private(of: Card) -> list[Loss]:
    """Levels with a claimed ε or a finite one."""
    return [loss for loss in of.privacy_loss if loss.claimed is not None or loss.privacy_parameters is not None]

"""What data/results/ holds of all suites, as commands show it: composition, coverage, cards, a comparison."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from rich.markup import escape
from rich.table import Column

from flows import settings
from flows.tables import make_table, print_table
from tasks.config.params import Params, load
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.rows import Row
from tasks.pages import exports, page
from tasks.pipeline.common import PROVENANCE, REPORTS, RESULTS
from tasks.pipeline.provenance import git
from tasks.results import composition
from tasks.results.budgets import budgets
from tasks.results.cards import Card, Loss, card
from tasks.results.composition import Spender
from tasks.results.facts import System, Together
from tasks.results.load import Results
from tasks.results.standings import Board, boards, entries, measure
from tasks.results.summary import TABLE, coverage
from tasks.stages.agreement import METRICS, bands, compare, means
from tasks.stages.report import collected, draw, paper_of, results_of

RELEASED = {"gram-svd": "svd", "gram-ease": "ease"}
"""Model of a suite -> the same of `dprec release`."""


def compose() -> Iterator[tuple[str, list[Together], list[str], dict[str, int]]]:
    """What all suites spend together on each data set on which something has a finite ε, and what is in no such sum.

    Yields:
        The data set, its sums, its experiments without noise, and by suite how many trials of its experiments are
        recorded, which have no noise either.

    Synthetic replicas are data sets of their own; what params.yaml no longer names is left out.

    Raises:
        DataError: a file of results is not what was written.
    """
    sources: dict[str, list[Spender]] = {}
    params = load()
    downloads = {name: _people(processed.dataset, params) for name, processed in params.processed.items()}
    for results in map(results_of, collected()):
        by_source: dict[str, list[System]] = {}
        for system in results.suite.systems:
            if system.dataset in downloads:
                by_source.setdefault(downloads[system.dataset], []).append(system)
        for source, systems in by_source.items():
            sources.setdefault(source, []).append((results, systems))
    for source, spenders in sorted(sources.items()):
        if composition.applies(spenders):
            trials = {results.suite.suite: _trials(results, systems) for results, systems in spenders}
            yield source, composition.compose(spenders), composition.without_noise(spenders), trials


def _people(name: str, params: Params) -> str:
    """Whose data these are: one name for all that one source gives, unless the people are invented, or a user's own."""
    dataset = params.datasets[name]
    if dataset.is_own or dataset.replica_of:
        return name
    return next(first for first, other in params.datasets.items() if other.source == dataset.source)


def _trials(results: Results, systems: Iterable[System]) -> int:
    names = {system.experiment for system in systems}
    return sum(name in names for name in results.tuning["experiment"])


def show_composed() -> None:
    """Print a row for each unit of each data set, and what is in no sum."""
    english, clear = page.english(), list[str]()
    numbers = [Column(name, justify="right") for name in ("releases", "without a bound", "largest ε", "ε together")]
    about = [Column(name) for name in ("data set", "suites", "network", "unit", "observer")]
    title = "ε of all settings and seeds of all suites on a data set, composed"
    table = make_table(title, *about, *numbers, Column("δ", justify="right"), Column("conditional on"))
    for source, together, open_, trials in compose():
        for group in together:
            names = (source, ", ".join(trials), group.network)
            words = (english["units"][group.unit], english["observers"][group.observer])
            counts = (str(group.releases), str(group.left_out), f"{group.largest:.4g}")
            total = ("∞" if group.epsilon is None else f"{group.epsilon:.4g}", f"{group.delta:.3g}")
            table.add_row(*names, *words, *counts, *total, ", ".join(page.conditions(group.given)))
        tried = [f"{count} tuning trials of {suite}" for suite, count in trials.items() if count]
        without = ", ".join([*open_, *tried]) or "nothing"
        clear.append(f"{source}: released without noise, in no sum: {without}")
    print_table(table, 200)
    print("\n".join(clear))


def show_coverage() -> None:
    """Print a row for each printed table of each data set, and the total.

    Raises:
        DataError: there are no results, or a file is not what was written.
    """
    suites = [results_of(name) for name in collected()]
    if not suites:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    measured = [(results.suite, results.comparison, paper_of(results).methods) for results in suites]
    counted = coverage(suites[0].published, measured)
    aligned = [Column(name, justify="left" if name in TABLE else "right") for name in counted.columns]
    table = make_table("numbers that papers print, by the best data that each was measured on", *aligned)
    for row in counted.iter_rows():
        table.add_row(*map(str, row))
    table.add_section()
    totals = counted.drop(TABLE).sum().row(0)
    table.add_row("all papers", *[""] * (len(TABLE) - 1), *map(str, totals), style="bold")
    print_table(table)


def show_headline(suite: str) -> None:
    """Print the decision of a suite, with which `dprec run` ends; nothing for a pipeline without results."""
    if (board := board_of(suite)) is None:
        return
    heads = ("utility", "% of ceiling", "vs. noisy popularity", "accounted ε", "audited ε")
    numbers = [Column(name, justify="right") for name in heads]
    about = Column("what"), Column("system"), *numbers, Column("not significantly worse")
    table = make_table(f"{suite}: {board.measure.label}", *about)
    for name, row in decision(board).items():
        if row is None:
            table.add_row(name, *["–"] * 7)
            continue
        share, gain, half = row.get("share"), row.get("gain"), row.get("half")  # of a row of `Board.answers`
        utility = f"{row['utility']:.3f}" + ("" if half is None else f" ± {half:.3f}")
        compared = "–" if share is None else f"{share:.0%}", "–" if gain is None else f"{gain:+.3f}"
        cells = [row["system"], utility, *compared, *budget(row), ", ".join(row.get("as_good", ())) or "–"]
        table.add_row(name, *map(escape, cells))
    print_table(table)
    if command := release_command(suite, board):
        print(exports.plain_text("suggestion", command=command))


def release_command(suite: str, board: Board) -> str | None:
    """How to release, for a shell, the best that `dprec release` makes of own data, at the smallest ε that has one.

    None where it makes none that beats noisy popularity significantly.
    """
    project = load()
    described = project.suites[suite]
    dataset = project.datasets[project.processed[described.data].dataset]
    models = {name: RELEASED.get(experiment.model) for name, experiment in described.experiments.items()}
    better = (each for each in board.answers() if not each["noisy_as_good"] and models[each["experiment"]])
    if (best := next(better, None)) is None or not dataset.is_own:
        return None
    columns: Any = dataset.read["interactions"]
    spent = ("--epsilon", f"{best['accounted']:g}", "--delta", f"{best['delta']:g}")
    ids = ("--user-column", columns["user"], "--item-column", columns["item"])
    model = "--model", str(models[best["experiment"]]), *ids, "--out", f"{suite}-release"
    words = (str(dataset.own_files()["interactions"]), *spent, *model)
    return shlex.join(("dprec", "release", *words))


def board_of(suite: str) -> Board | None:
    """The systems of a suite; None where nothing was collected or no utility measured."""
    if suite not in collected():
        return None
    results = results_of(suite)
    by = measure(results, paper_of(results))
    return next(iter(boards([(by, entries(results, by))])), None)


def decision(board: Board) -> dict[str, Row | None]:
    """Who is shown at the end of a run, by what it is: rows of a leaderboard."""
    bests: dict[str, Row | None] = {
        f"best private at user-level ε ≤ {each['limit']:g}": each for each in board.answers()
    }
    return (bests or {"best private at any user-level ε": None}) | {
        "noisy popularity": board.noisy,
        "ceiling, without privacy": board.ceiling,
    }


def budget(row: Row) -> tuple[str, str]:
    """The privacy budget of a system at its level, accounted and audited, as texts."""
    accounted, audited = row["accounted"], row["audited"]
    text = "–" if accounted is None else "∞" if math.isinf(accounted) else f"{row['level']}-level {accounted:.4g}"
    return text, "–" if audited is None else f"≥ {audited:.3g}"


def writable(folder: Path) -> Path:
    """The folder, or where the project may not be written to a temporary one."""
    return folder if settings.is_writable(Path.cwd()) else Path(mkdtemp(prefix="dprec-"), folder.name)


def report(suite: str, *, draw_first: bool = False) -> Path:
    """The page of a suite's report.

    draw_first: from the suite's results; without any, a page that is there stays as it is.

    Raises:
        DataError: there are no results, or no report.
    """
    folder = REPORTS / suite
    if draw_first and (suite in collected() or not folder.is_dir()):
        draw(suite, folder := writable(folder))
    path = folder / "index.html"
    if not path.is_file():
        raise DataError(f"{path}: no such report; write it with `dprec run {suite}`")
    return path


def private_cards(suite: str) -> dict[str, tuple[Card, Loss]]:
    """Experiment -> its card and the line of it that others have room for, of all private systems.

    Raises:
        ConfigurationError: there are no results of such a suite.
    """
    if suite not in collected():
        raise ConfigurationError(f"{suite}: no results of such a suite (have {', '.join(collected())})")
    results = results_of(suite)
    by, totals = measure(results, paper_of(results)), budgets(results)
    cards = {system.experiment: card(results, system, by, totals) for system in results.suite.compared}
    return {
        name: (described, max(losses, key=lambda loss: loss.privacy_parameters is not None))  # the first that has some
        for name, described in cards.items()
        if (losses := [loss for loss in described.privacy_loss if loss.claimed is not None or loss.privacy_parameters])
    }


def export(suite: str, experiment: str, form: str) -> str:
    """The card of one system in the form of others, as JSON.

    Raises:
        ConfigurationError: as `private_cards`, or there is no such private system.
    """
    private = private_cards(suite)
    if experiment not in private:
        raise ConfigurationError(f"{experiment}: no private system of {suite} (have {', '.join(private)})")
    return exported(f"{suite}/{experiment}", *private[experiment], form)


def exported(name: str, described: Card, loss: Loss, form: str) -> str:
    """A card in the form of others, as JSON; name: SUITE/EXPERIMENT."""
    if form == "opendp":
        return exports.opendp({"card": described, "loss": loss}, date.today().isoformat())
    parameters = loss.privacy_parameters
    properties = {
        "unit": loss.level,
        "neighbouring": ", ".join(loss.neighbouring) or None,
        "epsilon": "infinite" if parameters is None else parameters.epsilon,
        "delta": None if parameters is None else parameters.delta,
        "claimed-epsilon": loss.claimed,
        "audited-epsilon": None if loss.audit is None else loss.audit.epsilon,
        "noise": ", ".join(described.implementation.noise) or None,
        "conditional-on": ", ".join(loss.conditions) or None,
        "data": described.basic.kind,
    }
    return exports.cyclonedx(name, properties)


class NothingRun(DataError):
    """There are no regenerated numbers."""

    exit_code = 2


def compare_with_revision(suite: str, revision: str) -> None:
    """Compare `data/results/<suite>/metrics.csv` with that of a git revision, or as it was shipped without git.

    Raises:
        NothingRun: the suite was not run here to its end, so that the file is the committed one.
        DataError: one of the two is not there, or numbers, which are printed, differ by more than their tolerance.
    """
    from flows import plan  # with DVC

    path = RESULTS / suite / METRICS
    ran = (PROVENANCE / "check" / "metrics" / f"{suite}.json").is_file()
    with plan.current_project(suite) as project:
        pending = plan.read(f"report@{suite}", project).pending
    if pending:
        raise NothingRun(
            f"{suite}: its results were not computed here, or not to the end ({pending[0].name}: {pending[0].why}), so "
            f"there is nothing to compare; `dprec run {suite}` first"
        )
    if not ran:
        raise NothingRun(
            f"{suite}: its results were pulled, not computed here, so there is nothing to compare; "
            f"`dprec run {suite} --force` computes them"
        )
    if not path.is_file():
        raise DataError(f"{path}: not there; regenerate it with `dprec run {suite}`")
    shipped = settings.SHIPPED / f"{suite}.csv"
    if shipped.is_file():
        there, whose = shipped.as_posix(), "the archive"
        before: str | None = shipped.read_text(encoding="utf-8")
    else:  # a revision that starts with a hyphen is none of git's options
        there, whose = f"{revision}:./{path.as_posix()}", revision
        before = git("show", "--end-of-options", there)
    if before is None:
        raise DataError(f"{path}: {revision} has no numbers to compare with")
    regenerated = means(path.read_text(encoding="utf-8"), str(path))
    total, outside = compare(means(before, there), regenerated, bands(load().suites[suite]))
    for difference in outside:
        print(difference)
    if outside:
        raise DataError(f"{len(outside)} of {total} numbers of {suite} left their band around those of {whose}")
    print(f"{suite}: {total} numbers agree with those of {whose}")

"""The `dprec` command. Nothing heavy is imported before a command needs it: `dprec --help` answers at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows import audit, data, groups, release, settings
from flows.groups import AUDIT, MAINTENANCE, OWN, RELEASE, REPRODUCE
from flows.stopping import as_usual, end_on_signal
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline.common import private
from tasks.pipeline.last_words import one_line

app = typer.Typer(
    name="dprec",
    cls=groups.InPanels,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Reproduces, attacks and audits differentially private recommenders, and makes private releases.\n\n"
    "A *suite* is the systems of a paper, or others, on one data set; `suites/SUITE/` says what belongs to it. "
    "`dprec run demo` computes what is missing or out of date, and only that, and ends with an HTML report. "
    "`dvc repro report@demo` runs the same stages.",
)
Suite = Annotated[str, typer.Argument(help="A folder of suites/, e.g. demo or gerai.", show_default=False)]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run in this project to end.")]
DvcRepro = Annotated[
    bool, typer.Option("--dvc-repro", envvar="DPREC_DVC_REPRO", help="Run each stage by `dvc repro`: slower.")
]
app.add_typer(audit.app, name="audit", rich_help_panel=AUDIT)
app.add_typer(release.app, name="release", rich_help_panel=RELEASE)
app.add_typer(data.app, name="data", rich_help_panel=OWN)


@app.callback()
def common(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="DPREC_DEBUG", help="Show tracebacks and Prefect's own log.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=settings.show_version, is_eager=True),
    ] = False,
) -> None:
    """Runs before every command: finds the project, which an audit of files needs not, and sets the tools up."""
    command = context.invoked_subcommand or ""
    if debug:
        os.environ["DPREC_DEBUG"] = "1"
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "DEBUG")
    if command not in ("run", "schedule"):  # they set what stops them
        as_usual()
    if command in settings.WITHOUT_PROJECT:
        private()  # what it writes has rows of users, or names them
        return
    context.obj = Path.cwd()  # from which paths are given
    root = settings.project(context.obj)
    if command in settings.WRITING and not settings.is_writable(root):
        raise ConfigurationError(
            f"{root}: may not be written to, as `dprec {command}` does; run it in a clone of yours"
        )
    os.chdir(root)
    settings.apply(root)
    private()


@app.command(rich_help_panel=REPRODUCE)
def check(
    suite: Annotated[str | None, typer.Argument(help="Plan of this suite alone.", show_default=False)] = None,
) -> None:
    """Validate params.yaml and every suite's own, and show the plan: what is up to date, what will run, and why.

    Without a suite, a line per suite, and per data set that none uses; with one, its stages. Only dvc.yaml and
    code.json are brought up to date. The first wrong key is named in one line, with exit code 1.
    """
    from flows import plan, tables
    from flows.entries import require_device, require_known

    require_device()
    if suite:
        require_known(suite)
    with plan.current_project(suite, patient=False) as project:
        if suite:
            tables.show(plan.read(f"report@{suite}", project))
        else:
            tables.summarise(plan.read_all(project))


@app.command(rich_help_panel=MAINTENANCE)
def pipeline(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a file is behind.")] = False,
) -> None:
    """Write every dvc.yaml from the table of stages and the parameters. `run` and `check` do so by themselves."""
    from tasks.config import params
    from tasks.pipeline import dvc_files

    loaded = params.load()
    for path in dvc_files.outdated_files(loaded) if check else dvc_files.write(loaded):
        if check:
            raise ConfigurationError(f"{path}: behind the table of stages or the parameters; run `dprec pipeline`")
        print(f"{path}: written")


@app.command(rich_help_panel=REPRODUCE)
def run(
    context: typer.Context,
    suite: Suite,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Stages and units at the same time (default: one per core)."),
    ] = None,
    wait: Wait = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run every stage and work on every unit again, up to date or not.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Dask scheduler (tls://HOST:PORT) that units are sent to; local:N starts one."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", help="Folder or address (s3://...) that its workers share with this machine."),
    ] = None,
    insecure_cluster: Annotated[
        bool, typer.Option("--insecure-cluster", help="Accept a scheduler without TLS: its network can run code.")
    ] = False,
    dvc_repro: DvcRepro = False,
) -> None:
    """Bring a suite's report up to date and print its path.

    Stages run as one Prefect flow, independent ones side by side; those that are up to date are shown as `cached`.
    After Ctrl-C, the next run resumes. No server is needed; with PREFECT_API_URL set, the run is recorded there.
    """
    if dvc_repro:
        os.environ["DPREC_DVC_REPRO"] = "1"
    with end_on_signal(f"interrupted; `dprec run {suite}` goes on where this run stopped"):
        from flows import plan
        from flows.entries import require_device, require_known, take_prepared
        from flows.execution import hold_project
        from flows.live import show_up_to_date
        from flows.server import server
        from flows.store import located

        require_known(suite, to_run=True)
        if cluster is None:  # its workers have devices of their own
            require_device()
        store = located(store, context.obj, suite, clustered=cluster is not None)
        with hold_project(f"suite {suite}", wait=wait):
            take_prepared(suite)
            with plan.current_project(suite) as project:
                todo = plan.read(f"report@{suite}", project, force=force)
                project.settle(suite)
            if todo.pending:
                server()
                from flows.pipeline import regenerate

                regenerate(suite, jobs, wait, force, cluster=cluster, store=store, insecure_cluster=insecure_cluster)
            else:
                show_up_to_date(todo)
        from flows.results import report, show_headline

        show_headline(suite)
        print(f"report: {report(suite)}")


@app.command(rich_help_panel=MAINTENANCE)
def scrub() -> None:
    """Read every output and every object of DVC's cache, and remove those that are not what their hashes say.

    DVC trusts a file's time and mode, in which a lost bit does not show. The next `dprec run` restores what is removed,
    or computes it again. Exit code 1 if anything was damaged.
    """
    from flows.dvc import open_project
    from flows.execution import hold_project

    with hold_project("scrub"), open_project() as project:
        damaged = project.scrub()
    print("".join(f"{path}: damaged and removed\n" for path in damaged), end="")
    if damaged:
        raise DataError(f"{len(damaged)} damaged and removed; `dprec run SUITE` restores them or computes them again")
    print("every output and every object of the cache is what its hash says")


@app.command("report", rich_help_panel=REPRODUCE)
def draw_report(
    suite: Suite,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Draw a suite's report from data/results/SUITE/, and print its path.

    Nothing is computed: what is shown are the results as they lie there, on a fresh clone the committed ones.
    """
    from flows.results import report

    path = report(suite, draw_first=True)
    print(path)
    if open_it:
        typer.launch(path.resolve().as_uri())


@app.command(rich_help_panel=REPRODUCE)
def site(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write, by default site; what lies there is replaced.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Git revision: the index then begins with what changed since.")
    ] = None,
) -> None:
    """Draw the pages of all suites and those over them: index, leaderboards, privacy cards, coverage, docs.

    Nothing is computed: what is shown are the results in data/results/, on a fresh clone the committed ones.
    """
    from flows.results import writable
    from tasks.stages.site import write

    out = out or writable(Path("site"))
    write(context.obj / out, os.cpu_count() or 1, since)
    print(out / "index.html")


@app.command(rich_help_panel=OWN)
def init(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the data set and its suite, such as shop.")],
    ratings: Annotated[
        Path, typer.Argument(metavar="RATINGS", help="CSV, JSON lines, Parquet, RecBole or MovieLens formats.")
    ],
    users: Annotated[Path | None, typer.Option(help="What users are, which attacks try to infer.")] = None,
    licence: Annotated[
        str | None, typer.Option(help="Who may see the data; every report says it.", show_default=False)
    ] = None,
    user_column: audit.UserColumn = None,
    item_column: audit.ItemColumn = None,
    rating_column: audit.RatingColumn = None,
    time_column: Annotated[str | None, typer.Option(metavar="NAME", help="When it was.", show_default=False)] = None,
    wait: Wait = False,
) -> None:
    """Write data set, protocol and suite for your own files; `dprec run NAME` then runs them.

    The suite has popularity, EASE, noisy popularity, the models of a release and DPALS at five ε, and attacks on what
    users are. Edit what was written as docs/custom-data.md says.
    """
    from flows.own_data import LICENCE, begin

    names = audit.names_of({"user": user_column, "item": item_column, "rating": rating_column, "time": time_column})
    people = None if users is None else _in_project(context.obj / users)
    written, taken = begin(name, _in_project(context.obj / ratings), people, names, licence or LICENCE, wait=wait)
    print("\n".join(taken))
    print(f"written: {', '.join(map(str, written))}")
    print(f"next: `dprec data verify {name}` reads every row, `dprec run {name}` runs to the report")


@app.command("mechanisms", rich_help_panel=AUDIT)
def audit_mechanisms(
    names: Annotated[list[str] | None, typer.Argument(help="These audits alone.", show_default=False)] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Audits at the same time (default: one per core).")
    ] = None,
) -> None:
    """Attack every private model and mechanism on its worst case: what is claimed, accounted and proved of each ε.

    Takes some minutes. Exit code 1 if more is proved than is accounted. That a published claim is refuted for which
    nothing is accounted is a finding, and no fault.
    """
    from flows.tables import show_audits
    from tasks.stages import audit as audits

    if not show_audits(
        audits.run(chosen := audits.require_known(names or []), jobs or os.cpu_count() or 1), len(chosen)
    ):
        raise typer.Exit(1)


@app.command(rich_help_panel=REPRODUCE)
def composed() -> None:
    """What all releases of all suites on a data set spend together; a page composes those of its own suite alone."""
    from flows.results import show_composed

    show_composed()


@app.command(rich_help_panel=REPRODUCE)
def card(
    suite: Suite,
    system: Annotated[str, typer.Argument(help="A private system of it, e.g. demo-dp-popularity.", show_default=False)],
    form: Annotated[Literal["opendp", "cyclonedx"], typer.Option("--format")] = "opendp",
) -> None:
    """Print the privacy card of a suite's system as a record of OpenDP's registry, or as CycloneDX."""
    from flows.results import export

    print(export(suite, system, form), end="")


@app.command(rich_help_panel=REPRODUCE)
def coverage() -> None:
    """Count the numbers that the papers print by the data that they were measured on.

    Each printed number counts once: as real, of a part of the real data, of a synthetic replica, or as none. Nothing is
    computed: what counts are the results in data/results/, on a fresh clone the committed ones.
    """
    from flows.results import show_coverage

    show_coverage()


@app.command(rich_help_panel=REPRODUCE)
def compare(
    suite: Suite,
    against: Annotated[str, typer.Option("--against", help="Git revision that holds the other numbers.")] = "HEAD",
) -> None:
    """Compare the regenerated numbers with the committed ones; exit 1 and list what left its band.

    What is compared is the mean over seeds of each metric. Bands: metrics of lists ±0.03, of next items ±0.01, errors
    of ratings ±0.02, of reconstructed ones ±0.03, alignments ±0.03, what classifiers and attacks infer ±0.1, or three
    standard errors of the seeds where that is more (tasks/config/tasks.py has all). The same code on the same machine
    agrees to the last digit; the bands leave room for another processor. Where nothing was run there is nothing to
    compare: exit 2.
    """
    from flows.results import compare_with_revision

    compare_with_revision(suite, against)


@app.command(rich_help_panel=REPRODUCE)
def tune(
    experiment: Annotated[str, typer.Argument(help="An experiment of a suite, e.g. gerai-bpr.", show_default=False)],
) -> None:
    """Try the configurations of `tuning.grid` on validation data; the test is never read.

    Every trial goes into data/results/SUITE/tuning.csv, and the best is printed for you to write into
    suites/SUITE/params.yaml. The processed data must be there: `dvc repro data/dvc.yaml:check-processed@DATA` makes
    them. A trial that was cut off is resumed.
    """
    from tasks.config import params, references
    from tasks.stages import tune as tuning

    with end_on_signal(f"interrupted; `dprec tune {experiment}` goes on where it stopped"):
        references.check_references(params.load())
        tuning.main(experiment)


@app.command(rich_help_panel=MAINTENANCE)
def schedule(
    notify: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="DPREC_NOTIFY", help="A webhook that is notified of every run that fails."),
    ] = None,
) -> None:
    """Serve the schedules until Ctrl-C: the demo every night, every suite that needs nothing placed by hand every week.

    Runs are recorded by the Prefect server at PREFECT_API_URL; without one, a local server is started and ends with
    this command, as a run does that is going on. Its pages show the runs, their logs and the report.
    """
    with end_on_signal("interrupted; a run that was going on goes on where it stopped"):
        from flows.deployments import serve_schedules

        serve_schedules(notify)


def main() -> None:
    """Entry point: an error is one line and exit code 1, or its own; `--debug` shows the traceback."""
    try:
        app()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        if os.environ.get("DPREC_DEBUG") == "1":
            raise
        if isinstance(error, ModuleNotFoundError):
            error = ConfigurationError(
                f"{error.name} is not installed, which this command needs: pip install '.[pipeline]' in a clone"
            )
        print(f"dprec: {one_line(error)}", file=sys.stderr)
        raise SystemExit(getattr(error, "exit_code", 1)) from None


def _in_project(path: Path) -> Path:
    """A path as params.yaml has it: from the project's root, or absolute."""
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

"""`dprec audit`: a recommender, from its files. Needs no project folder."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.stopping import end_on_signal
from tasks.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tasks.external.command import Repeated
    from tasks.external.findings import Audit
    from tasks.external.reading import Names, Role
    from tasks.external.run import AuditRequest

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

UserColumn = Annotated[
    str | None,
    typer.Option(help="The column of users, where it has no usual name; without a header, by position: column_1, ..."),
]
ItemColumn = Annotated[str | None, typer.Option(help="The column of items.")]
RatingColumn = Annotated[str | None, typer.Option(help="The column of ratings.")]
AllowUndecided = Annotated[bool, typer.Option("--allow-undecided", help="Exit code 0 in place of 4.")]


@app.callback()
def audit(
    context: typer.Context,
    train: Annotated[Path | None, typer.Option(help="What was trained on: user, item, and rating if any.")] = None,
    recommendations: Annotated[Path | None, typer.Option(help="Released lists: user, item, rank or score.")] = None,
    public: Annotated[Path | None, typer.Option(help="Known, but not trained on: user, item, rating.")] = None,
    users: Annotated[Path | None, typer.Option(help="Attributes of users: user, and a column for each.")] = None,
    scores: Annotated[Path | None, typer.Option(help="Released scores: user, item, score.")] = None,
    canaries: Annotated[Path | None, typer.Option(help="canaries.csv of `dprec audit canaries`.")] = None,
    shadows: Annotated[str | None, typer.Option(help="Lists of shadow runs, such as 'runs/*.parquet'.")] = None,
    attributes: Annotated[str, typer.Option(help="Columns of --users, with commas; all that can be.")] = "",
    claimed_epsilon: Annotated[float | None, typer.Option(help="What canaries are to refute.")] = None,
    delta: Annotated[float, typer.Option(help="The delta of the bound by canaries.")] = 1e-5,
    control: Annotated[
        Path | None, typer.Option(help="Lists of the same system without its protection, trained on --train.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="Trains and writes lists, such as './x.sh {train} {out}'. Also: {histories} (of all users who are to "
            "get lists, trained on or not), {seed} (another number in each run)."
        ),
    ] = None,
    control_command: Annotated[
        str | None, typer.Option(help="The same as --command, without its protection: shows the power of the audit.")
    ] = None,
    runs: Annotated[int, typer.Option(min=2, help="Of --command: the audited one and its shadows.")] = 32,
    work: Annotated[Path, typer.Option(help="Of --command: folder of its runs.")] = Path("audit-runs"),
    time_limit: Annotated[float, typer.Option(min=0.1, help="Of --command: seconds of each run.")] = 3600.0,
    canary_count: Annotated[int, typer.Option(min=0, help="Of --command: canaries in each run.")] = 50,
    allow_undecided: AllowUndecided = False,
    out: Annotated[Path, typer.Option(help="Folder of audit.json, index.html and exposed.csv.")] = Path("audit"),
    seed: Annotated[int, typer.Option(min=0, help="Of samples and attackers.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Attacks, or runs of --command, at a time.")] = 2,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    score_column: Annotated[str | None, typer.Option(help="The column of scores.")] = None,
    rank_column: Annotated[str | None, typer.Option(help="The column of ranks.")] = None,
) -> None:
    """Audit your own recommender from its files: what do its lists reveal of the users it was trained on?

    Files: CSV, JSON lines, Parquet, RecBole or MovieLens formats. Or give --train and --command: it is run on random
    subsets of it, with canaries, and the lists that it writes are audited. It is run again only where it has not
    finished.

    Attacks, each with its controls: attributes beyond the ratings, membership of users and of interactions, held-back
    ratings, and what canaries prove of epsilon.

    Exit code 0: every question was answered, and no leak is shown. 3: a leak is shown or a claim is refuted. 4: no leak
    is shown, and a question could not be decided or the claimed epsilon is inconclusive. 1: bad input, and nothing is
    written to --out.
    """
    if context.invoked_subcommand is not None:
        _refuse_before_subcommand(context, context.invoked_subcommand)
        return
    of_command = ("control_command", "runs", "work", "time_limit", "canary_count")
    for option in _on_command_line(context, of_command) if command is None else ():
        raise ConfigurationError(f"{option} needs --command")
    other_files = (public, scores, canaries, shadows, control)
    if command is not None and any(file is not None for file in (recommendations, *other_files)):
        raise ConfigurationError(
            "--command makes lists, public data, canaries and shadow runs itself; give --train alone"
        )
    if train is None or (recommendations is None and command is None):
        raise ConfigurationError(
            "audit needs --train, and --recommendations or --command; `dprec audit --help` says what they are"
        )
    from tasks.external.command import Repeated
    from tasks.external.run import AuditRequest, OtherRun, find_shadows

    chosen = tuple(name.strip() for name in attributes.split(",") if name.strip())
    names = names_of(
        {"user": user_column, "item": item_column, "rating": rating_column, "score": score_column, "rank": rank_column}
    )
    files = (train, recommendations, public, users, scores, canaries)
    other_runs = [] if shadows is None else find_shadows(shadows)
    controls = [] if control is None else [OtherRun(train, control, canaries)]
    request = AuditRequest(
        *files, other_runs, chosen, claimed_epsilon, delta, seed, jobs, controls, allow_undecided, names
    )
    how = (time_limit, canary_count)
    without = None if control_command is None else Repeated(control_command, runs, work / "control", *how)
    repeated = None if command is None else Repeated(command, runs, work, *how, without)
    _run(request, repeated, out)


def _refuse_before_subcommand(context: typer.Context, name: str) -> None:
    if options := list(_on_command_line(context, context.params)):
        raise ConfigurationError(
            f"{', '.join(options)} before `{name}` would be dropped; write `dprec audit {name}` first and its own "
            f"options after it, which `dprec audit {name} --help` lists"
        )


def _on_command_line(context: typer.Context, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            yield f"--{name.replace('_', '-')}"


def _run(request: AuditRequest, repeated: Repeated | None, out: Path) -> None:
    from tasks.external.command import repeat
    from tasks.external.run import run
    from tasks.external.writing import require_folder, write

    require_folder(out)
    if repeated is not None and repeated.work.resolve().is_relative_to(out.resolve()):
        raise ConfigurationError(f"--work {repeated.work}: not in --out, {out}, which is to hold the audit alone")
    start = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {line}", file=sys.stderr, flush=True)

    if repeated is not None:
        with end_on_signal(f"dprec: interrupted; the same command goes on with what is finished in {repeated.work}"):
            request = repeat(repeated, request, say)
    result, exposed = run(request, say)
    _report(result, write(result, exposed, out))


@app.command()
def canaries(
    train: Annotated[Path, typer.Option(help="The interactions that you train on, CSV.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the new files.", show_default=False)],
    count: Annotated[int, typer.Option(min=1, help="Canaries; more of them can prove more.")] = 200,
    items: Annotated[int, typer.Option(min=1, help="Rare items that canary and witness share.")] = 4,
    least: Annotated[int, typer.Option(min=1, help="Interactions that a rare item must have.")] = 1,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
) -> None:
    """Put canaries into training data: made-up users whose membership bits decide who is in. Says what to do next."""
    from tasks.external.canaries import plant

    names = names_of({"user": user_column, "item": item_column, "rating": rating_column})
    *_, page = paths = plant(train, count, items, least, out, names)
    print(page.read_text(encoding="utf-8"), end="")
    print(f"written: {', '.join(map(str, paths))}")


@app.command()
def graphs(
    embeddings: Annotated[Path, typer.Option(help="Released: user, and the numbers of a vector.", show_default=False)],
    edges: Annotated[Path | None, typer.Option(help="True links between these users: source, target.")] = None,
    other_embeddings: Annotated[Path | None, typer.Option(help="Released by the other network.")] = None,
    anchors: Annotated[Path | None, typer.Option(help="Who is whom: source, target in the other network.")] = None,
    users: Annotated[
        Path | None, typer.Option(help="What attackers know without the release: user, attributes.")
    ] = None,
    other_users: Annotated[Path | None, typer.Option(help="The same of the other network.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of audit.json and index.html.")] = Path("audit"),
    seed: Annotated[int, typer.Option(min=0, help="Of samples and ties.")] = 0,
    allow_undecided: AllowUndecided = False,
    user_column: UserColumn = None,
    source_column: Annotated[str | None, typer.Option(help="The first user of a pair.")] = None,
    target_column: Annotated[str | None, typer.Option(help="The second.")] = None,
) -> None:
    """Audit released embeddings of a social network: do they reveal links, or accounts in another network?

    With --edges: link stealing. With --other-embeddings and --anchors: re-identification between two networks.

    **Only for test data of people who have consented, and for networks that are your own.** It must not be used to find
    out who a pseudonymous person is, whom a person knows, or to join accounts of people who have not agreed. It names
    no one: what it writes are shares.

    Exit codes are those of `dprec audit`.
    """
    from tasks.external.graphs import run
    from tasks.external.writing import require_folder, write

    require_folder(out)
    names = names_of({"user": user_column, "source": source_column, "target": target_column})
    files = (embeddings, edges, other_embeddings, anchors, users, other_users)
    say = partial(print, file=sys.stderr)
    result = run(say, *files, seed=seed, allow_undecided=allow_undecided, names=names)
    _report(result, write(result, None, out))


def _report(result: Audit, paths: Sequence[Path]) -> None:
    from tasks.external.findings import shown

    for sentence in result.verdict.sentences:
        print(shown(sentence))
    print(f"written: {', '.join(map(str, paths))}")
    if result.verdict.exit_code:
        raise typer.Exit(result.verdict.exit_code)


def names_of(columns: dict[Role, str | None]) -> Names:
    """The columns that options name."""
    from tasks.external.reading import Names

    return Names({role: name for role, name in columns.items() if name is not None})

"""`dprec audit`: somebody else's recommender, from its files. Needs no project folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tasks.errors import ConfigurationError

if TYPE_CHECKING:
    from tasks.external.reading import Names, Role

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

UserColumn = Annotated[str | None, typer.Option(help="The column of users, where it has no usual name.")]
ItemColumn = Annotated[str | None, typer.Option(help="The column of items.")]
RatingColumn = Annotated[str | None, typer.Option(help="The column of ratings.")]


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
    out: Annotated[Path, typer.Option(help="Folder of audit.json, index.html and exposed.csv.")] = Path("audit"),
    seed: Annotated[int, typer.Option(min=0, help="Of samples and attackers.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Attacks at the same time.")] = 2,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    score_column: Annotated[str | None, typer.Option(help="The column of scores.")] = None,
    rank_column: Annotated[str | None, typer.Option(help="The column of ranks.")] = None,
) -> None:
    """Audit your own recommender from its files: what do its lists tell of the people it was trained on?

    Files are CSV with a header, or Parquet. Attacks, each beside its controls: attributes beyond the ratings,
    membership of users and of interactions, held-back ratings, and what canaries prove of epsilon.

    Exit code 0: no leak is shown. 3: a leak is shown or a claim is refuted. 1: bad input, and nothing is written.
    """
    if context.invoked_subcommand is not None:
        return
    if train is None or recommendations is None:
        raise ConfigurationError("audit needs --train and --recommendations; `dprec audit --help` says what they hold")
    from tasks.external.run import Asked, run
    from tasks.external.writing import write

    chosen = tuple(name.strip() for name in attributes.split(",") if name.strip())
    names = names_of(
        {"user": user_column, "item": item_column, "rating": rating_column, "score": score_column, "rank": rank_column}
    )
    files = (train, recommendations, public, users, scores, canaries, shadows)
    start = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {line}", file=sys.stderr, flush=True)

    result, exposed = run(Asked(*files, chosen, claimed_epsilon, delta, seed, jobs, names), say)
    paths = write(result, exposed, out)
    for sentence in result.verdict.sentences:
        print(sentence)
    print(f"written: {', '.join(map(str, paths))}")
    if result.verdict.exit_code:
        raise typer.Exit(result.verdict.exit_code)


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
    """Put canaries into training data: users of whom a coin decides who is in. Says what to do with the files."""
    from tasks.external.canaries import plant

    names = names_of({"user": user_column, "item": item_column, "rating": rating_column})
    *_, page = paths = plant(train, count, items, least, out, names, None)
    print(page.read_text(), end="")
    print(f"written: {', '.join(map(str, paths))}")


def names_of(columns: dict[Role, str | None]) -> Names:
    """The columns that options name."""
    from tasks.external.reading import Names

    return Names({role: name for role, name in columns.items() if name is not None})

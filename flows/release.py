"""`dprec release`: a private recommender from a table of interactions. Needs no project folder."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from flows.audit import ItemColumn, UserColumn, names_of
from flows.groups import WithDefault
from flows.stopping import end_on_signal
from tasks.core.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from tasks.release.building import Built


app = typer.Typer(
    cls=WithDefault,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make a private release of interactions, fit recommenders from it, and serve lists.\n\n"
    "`dprec release ratings.csv --epsilon 1 --catalogue items.csv --out FOLDER` makes one (`make`).",
)
Folder = Annotated[Path, typer.Argument(help="What --out was.", show_default=False)]
LISTS = b"user,item,rank\n"
"""The first line of lists."""
ModelName = Annotated[Literal["svd", "ease", "knn", "als"], typer.Option("--model")]


@app.callback()
def _show_warnings() -> None:
    warnings.showwarning = lambda message, *_, **__: print(message, file=sys.stderr)


@app.command()
def make(
    ratings: Annotated[
        Path, typer.Argument(help="User and item: CSV, Parquet, or a folder of Parquet.", show_default=False)
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of each user for everything.", show_default=False)],
    out: Annotated[Path, typer.Option(help="New folder.", show_default=False)],
    catalogue: Annotated[Path | None, typer.Option(help="All items, known without the ratings: item.")] = None,
    delta: Annotated[float, typer.Option(help="Chosen without the data.")] = 1e-6,
    users: Annotated[int | None, typer.Option(min=1, help="How many there are, if that is public.")] = None,
    model: ModelName = "svd",
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Estimate utility, on a tenth of each row.")] = False,
    audited: Annotated[bool, typer.Option("--audit", help="Audit the code; writes nothing if ε is refuted.")] = False,
    research_noise: Annotated[
        int | None, typer.Option(min=0, metavar="SEED", help="For experiments: noise that SEED undoes.")
    ] = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
) -> None:
    """Make a private release: the default command."""
    from tasks.core.disk import require_writable
    from tasks.external import coding
    from tasks.release.building import Wanted, build
    from tasks.release.sums import rows_of

    _require_new(out)
    require_writable(out)
    wanted = Wanted(epsilon, delta, users, model, evaluate, audited, research_noise)
    names = names_of({"user": user_column, "item": item_column})
    names.require([file for table in (ratings, catalogue) if table is not None for file in coding.parts(table)])
    data = coding.coded(ratings, names, None if catalogue is None else coding.catalogue(catalogue, names))
    items = data.item_ids.to_list()
    rows = rows_of(data.users, data.items, len(data.user_ids), len(items))
    sizes = f"{rows.shape[0]:,} users, {len(items):,} items, {rows.nnz:,} interactions"
    print(f"{sizes}; {data.strangers:,} rows left out, of items that are not in the catalogue", file=sys.stderr)
    if not rows.nnz:
        raise DataError(f"{ratings}: no row has an item of the catalogue")
    _write(build(rows, wanted, ["catalogue-seen"] if catalogue is None else []), items, out)


@app.command()
def fit(
    folder: Folder,
    model: ModelName,
    ridge: Annotated[float | None, typer.Option(min=1e-9, max=1e12, help="Of EASE.")] = None,
) -> None:
    """Fit another model from release.safetensors alone: without data, at no cost."""
    from tasks.release import files, models

    if ridge is not None and model != "ease":
        raise ConfigurationError("--ridge is of --model ease alone")
    release, items, marks = files.load_release(folder)
    fitted = models.fit(release, model, ridge)
    files.save_model(folder, fitted, items, marks)
    print(f"{folder / files.MODEL}: {fitted.kind}")


@app.command()
def recommend(
    folder: Folder,
    lists_for: Annotated[
        Path, typer.Option("--for", help="Rows of the users who get lists: user, item.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="CSV: user, item, rank.", show_default=False)],
    k: Annotated[int, typer.Option("--k", min=1, help="Items of a list.")] = 20,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
) -> None:
    """Write lists for users' own rows: own items are left out, ids are those of the table."""
    import polars as pl

    from tasks.core.disk import atomic_write
    from tasks.external import coding
    from tasks.release import files
    from tasks.release.serving import table
    from tasks.release.sums import rows_of

    tables = coding.parts(lists_for)
    if out.is_symlink() or (out.exists() and not out.is_file()) or folder.resolve() in out.resolve().parents:
        raise ConfigurationError(f"--out {out}: is a link, a folder or a device, or in the release; name a new file")
    if out.exists() and any(map(out.samefile, tables)):
        raise ConfigurationError(f"--out {out}: is a table of --for")
    if out.exists() and out.read_bytes()[: len(LISTS)] != LISTS:
        raise ConfigurationError(f"--out {out}: holds something else than lists; name a new file")
    served = files.load(folder)
    names = names_of({"user": user_column, "item": item_column})
    names.require(tables)
    data = coding.coded(lists_for, names, pl.Series(served.items, dtype=pl.String))
    if data.strangers:
        print(f"{lists_for}: {data.strangers:,} rows left out, of items that are not in the release", file=sys.stderr)
    rows = rows_of(data.users, data.items, len(data.user_ids), len(served.items))
    with atomic_write(out) as new_file:
        table(served, rows, data.user_ids.to_list(), k).write_csv(new_file)
    print(f"{out}: {len(data.user_ids):,} lists")


def _require_new(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise ConfigurationError(f"--out {out}: is there already, and a second release adds up; choose a new folder")


def _write(built: Built, items: list[str], out: Path) -> None:
    from tasks.core.disk import rename
    from tasks.pages import exports as page
    from tasks.release import files

    out.parent.mkdir(parents=True, exist_ok=True)
    scratches = TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent)
    with end_on_signal(f"dprec: interrupted; {out} is whole or not there"), scratches as scratch:
        new_folder = Path(scratch) / out.name
        new_folder.mkdir()
        files.save_release(new_folder, built.release, items, built.marks)
        files.save_model(new_folder, built.model, items, built.marks)
        texts = {files.LEDGER: json.dumps(built.ledger, indent=2) + "\n", files.CARD: page.card(built.ledger)}
        texts |= page.records(built.ledger, date.today().isoformat())
        for name, text in texts.items():
            (new_folder / name).write_text(text, encoding="utf-8")
        try:
            rename(new_folder, out)
        except OSError:
            _require_new(out)  # it may be there by now
            raise
    names = [str(out / name) for name in (files.RELEASE, files.MODEL, *texts)]
    print(page.plain_text("paragraph", ledger=built.ledger, files=names))

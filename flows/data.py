"""`dprec data`: what data sets there are, and whether those that users place are right."""

from __future__ import annotations

from typing import Annotated

import typer

from tasks.core.errors import DataError

STATES = {
    "present": "obtained",
    "generated": "synthetic, made when needed",
    "placed": "in data/placed",
    "in the mirror": "the folder DPREC_MIRROR",
    "in the mirror, perhaps": "DPREC_MIRROR is an address, which is not asked",
    "downloadable": "from its official address",
    "needs a form": "only its publisher gives it out",
    "yours": "files you name",
}
"""States of `tasks.stages.data.State` -> what they mean."""
app = typer.Typer(no_args_is_help=True, help="What data sets there are, and whether what you placed is right.")


@app.command(
    "list",
    help="List every data set: what it holds, its size and licence, its state here, and what to do next.\n\nStates: "
    + "; ".join(f"*{state}* ({meaning})" for state, meaning in STATES.items())
    + ".",
)
def data_list() -> None:
    """List every data set."""
    from rich.markup import escape
    from rich.table import Column, Table

    from flows.tables import print_table
    from tasks.stages.data import listing

    columns = ("data set", "what it holds", "size", "licence", "state", "next step")
    table = Table(*(Column(name, overflow="fold") for name in columns), show_lines=True)
    colours = {"present": "green", "needs a form": "yellow"}
    for listed in listing():
        source, colour = listed.source, colours.get(listed.state, "cyan")
        size = f"{source.size / 1e6:,.1f} MB" if source.size else ""
        first, *further = listed.names
        name = first + (f"\n({', '.join(further)})" if further else "")
        cells = (name, source.holds, size, source.licence, listed.next_step)
        name, holds, size, licence, step = (escape(cell) for cell in cells)
        table.add_row(name, holds, size, licence, f"[{colour}]{listed.state}[/{colour}]", step)
    print_table(table)


@app.command("verify")
def data_verify(
    name: Annotated[str, typer.Argument(help="A data set of `dprec data list`, e.g. tmall.", show_default=False)],
) -> None:
    """Tell whether a data set can be used: its files, their checksums, how they read, what the tables hold.

    For one that needs a form and is not here yet: where to get it, what to ask for, where to put it. Nothing of the
    pipeline is touched. Large files take as long as they take to read.
    """
    from rich.console import Console
    from rich.markup import escape

    from tasks.stages.data import inspect

    console, right = Console(soft_wrap=True, highlight=False), True
    with console.status(f"reading {escape(name)}"):
        for finding in inspect(name):
            console.print(f"{'ok   ' if finding.right else 'WRONG'} {finding.what}: {finding.verdict}", markup=False)
            right &= finding.right
    if not right:
        raise DataError(f"{name}: not usable as it is")
    console.print(f"{name}: usable", markup=False)

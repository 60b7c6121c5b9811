"""How commands are listed in `--help`, and which one is meant where none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup
from typing_extensions import override

if TYPE_CHECKING:
    from typer import _click

AUDIT, REPRODUCE = "Audit: dprec audit --train ratings.csv", "Reproduce: dprec run demo"
RELEASE = "Release: dprec release ratings.csv --epsilon 1 --out shop-release"
OWN, MAINTENANCE = "Your data: dprec init shop ratings.csv", "Maintenance: dprec scrub"
PANELS = (AUDIT, REPRODUCE, RELEASE, OWN, MAINTENANCE)
"""Groups of commands, each with an example, in their order."""


class InPanels(TyperGroup):
    """Lists commands in the order of `PANELS`, in each panel the command of its example first."""

    @override
    def list_commands(self, ctx: _click.Context) -> list[str]:
        panels = {name: getattr(command, "rich_help_panel", "") for name, command in self.commands.items()}
        examples = [name for name, panel in panels.items() if f"dprec {name} " in f"{panel} "]
        return sorted(panels, key=lambda name: (PANELS.index(panels[name]), name not in examples))


class WithDefault(TyperGroup):
    """A group of which `default` is run where the first argument names no command."""

    default = "make"

    @override
    def parse_args(self, ctx: _click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

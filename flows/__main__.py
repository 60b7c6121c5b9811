"""The `dprec` program: what it is asked to stop by is heeded before anything heavy is loaded."""

import sys

from flows import stopping


def main() -> None:
    """Entry point."""
    stopping.at_once()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may not have ε
    from flows import cli

    cli.main()


if __name__ == "__main__":
    main()

"""The `dprec` program: what it is asked to stop by is heeded before anything heavy is loaded."""

from flows import stopping


def main() -> None:
    """Entry point."""
    stopping.at_once()
    from flows import cli

    cli.main()


if __name__ == "__main__":
    main()

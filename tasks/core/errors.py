"""The ways a run can be refused; each message is one line that says what, where and what to do."""


class DprecError(Exception):
    """Base of every error that is shown to the user as one line, with exit code 1.

    Messages quote what files hold: characters that are no text are shown as Python writes them, for a terminal may
    obey them.
    """

    lines = False
    """Whether its message has several lines."""

    def __init__(self, message: str) -> None:
        parts = message.split("\n") if self.lines else [" ".join(message.split("\n"))]
        super().__init__("\n".join(map(_escape, parts)))


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class DataError(DprecError):
    """Raised when a file or table is not what its contract says (names file and line, or table, column and row)."""


class DamagedError(DataError):
    """Raised when an output of a stage is not as it was written (the message names the stage that must run again)."""


class ByHandError(DataError):
    """Raised when a file must be fetched by hand: three lines that say where, what, and where to put it."""

    lines = True


class ConfigurationError(DprecError):
    """Raised when params.yaml or a command asks for something that cannot be run (names the key)."""


class DivergenceError(DprecError):
    """Raised when training with this configuration left all bounds: scores or vectors are not finite."""


class PrivacyError(DprecError):
    """Raised when a privacy budget is invalid or a guarantee that was asked for cannot be given."""

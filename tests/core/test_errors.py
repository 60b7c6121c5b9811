"""A message is one line of printable text, whatever it quotes."""

import pytest

from tasks.core.errors import ByHandError, ConfigurationError, DataError


@pytest.mark.parametrize("kind", [DataError, ConfigurationError])
def test_what_a_message_quotes_cannot_command_a_terminal(kind: type[DataError]) -> None:
    error = kind("u.item:3: title is \x1b]0;owned\x07Caf\u00e9\u202e\ud800\nnext")
    assert str(error) == r"u.item:3: title is \x1b]0;owned\x07Caf\xe9\u202e\ud800 next".replace(r"\xe9", "\u00e9")
    assert str(error).isprintable()


def test_what_is_fetched_by_hand_has_its_lines() -> None:
    assert str(ByHandError("where\nwhat\x00\nput it")) == "where\nwhat\\x00\nput it"

"""Mistakes in params.yaml and the suites' files, each with how its message begins: the lines of mistakes.txt.

A line is `SUITE KEY = VALUE => MESSAGE`, of the root's file with `root` as suite, with `|=` for an entry that gets more
keys and `KEY gone` for one that is removed. The message names that key, or with `->` in place of `=>` its own.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests import parameters

ORIGINAL = parameters.read()
WEIBO, TWITTER, WORDS = "dpcrosue-weibo-twin", "dpcrosue-foursquare-twitter-twin", "dpvae-ml-100k"
DEMO = "suites", "demo"
FILES = {"attack": "attack.yaml", "training_audit": "attack.yaml", "tuning": "tuning.yaml"}
GONE = object()
Change = Callable[[dict[str, Any]], None]
_LINE = re.compile(r"(?P<suite>\S+) (?P<key>.+?) (?:gone|(?P<how>\|?=) (?P<value>.+?)) (?P<arrow>[=-])>(?P<message>.*)")


class Mistake(NamedTuple):
    """A change of the parameters, and the regular expression of the message that refuses it."""

    suite: str
    change: Change
    message: str


def put(*keys: str, value: Any = GONE) -> Change:
    """Sets one key, however deep, or removes it."""

    def change(params: dict[str, Any]) -> None:
        table = params
        for key in keys[:-1]:
            table = table[key]
        if value is GONE:
            del table[keys[-1]]
        else:
            table[keys[-1]] = value

    return change


def _mistake(line: str) -> Mistake:
    for name, meaning in (("$W", WEIBO), ("$O", TWITTER), ("$T", WORDS)):
        line = line.replace(name, meaning)
    match = _LINE.fullmatch(line)
    assert match, line
    suite, key = match["suite"], match["key"]
    keys = (*(() if suite == "root" else ("suites", suite)), *key.split("."))
    change = put(*keys)
    if match["how"]:
        value = yaml.safe_load(match["value"])
        if match["how"] == "|=":
            value = ORIGINAL["suites"][suite][key.split(".")[0]][key.split(".")[1]] | value
        change = put(*keys, value=value)
    file = "" if suite == "root" else f"suites/{suite}/{FILES.get(key.split('.')[0], 'params.yaml')}: "
    message = file + (f"{key}: " if match["arrow"] == "=" else "") + match["message"].strip()
    return Mistake(suite, change, re.escape(message.strip()).replace(r"\.\*", ".*"))


MISTAKES = [_mistake(line) for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()]

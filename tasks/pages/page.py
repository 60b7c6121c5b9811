"""Pages of the site: a template with whole sentences, and the facts that fill its slots.

A page is one HTML file without any request to elsewhere: style and script stand in it, its policy allows this one
script by its digest, everything is escaped, and all content is there without the script.
"""

from __future__ import annotations

import base64
import hashlib
import math
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tasks.pages import charts
from tasks.pages.charts import rounded_down
from tasks.privacy.remarks import Explanation, KnownGap

if TYPE_CHECKING:
    from tasks.core.rows import Row

TEMPLATES = Path(__file__).parent / "templates"
DASH = "–"


@dataclass(frozen=True)
class Page:
    """One page: where it lies in the site, its template, and what its slots are filled with."""

    address: str
    """From the root of the site, such as `suites/gerai/ledger.html`."""
    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    templates: Path = TEMPLATES
    """The folder that has the template, which may use those of `TEMPLATES`."""


@dataclass(frozen=True)
class Column:
    """A column of a table whose rows are dicts: declared in templates by `column(...)`."""

    key: str
    title: str
    kind: str = "text"
    """How cells are written: text, prose, number, difference, integer, epsilon (infinity as ∞), bound (lower),
    mean (with its deviation under `KEY_std`), verdict, list, link (to the address under `KEY_href`), clipped or p."""
    digits: int = 3
    better: str = ""
    """`higher` or `lower`; empty where neither is better."""
    second: str = ""
    """Key of a smaller line below, which is bold where there is a true `KEY_near`."""
    group: str = ""
    """Heading above this column and its neighbours of the same group."""

    def cell(self, row: Row) -> Row:
        """Text, number to sort by ("" for none), class and link of the cell of a row."""
        value = row.get(self.key)
        below = row.get(self.second) if self.second else None
        content = {
            "text": DASH,
            "sort": "",
            "kind": self.kind,
            "href": row.get(f"{self.key}_href", ""),
            "second": below,
        }
        if value is None:
            return content | {"kind": f"{self.kind} missing"}
        if self.kind in ("text", "link", "clipped", "prose"):
            return content | {"text": str(value)}
        if self.kind == "verdict":
            return content | {"text": value, "kind": f"verdict {value}"}
        if self.kind == "list":
            return content | {"text": ", ".join(map(str, value)) or DASH}
        deviation = row.get(f"{self.key}_std") if self.kind == "mean" else None
        return content | {
            "kind": f"{self.kind}{' near' if row.get(f'{self.key}_near') else ''}",
            "text": self._number(value) + (f" ± {number(deviation, self.digits)}" if deviation else ""),
            "sort": value,
        }

    def _number(self, value: float) -> str:
        if self.kind == "integer":
            return f"{value:,}"
        if self.kind == "p" and value < 10**-self.digits:
            return f"< {number(10**-self.digits, self.digits)}"
        if self.kind in ("epsilon", "bound"):
            return bound(value) if self.kind == "bound" else epsilon(value)
        return signed(value, self.digits) if self.kind == "difference" else number(value, self.digits)


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed count of decimals and a true minus sign, never "-0.000"; a dash for none."""
    if value is None:
        return DASH
    rounded = round(value, digits)
    return f"{'−' if rounded < 0 else ''}{abs(rounded):,.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign."""
    return f"{'+' if value and round(value, digits) > 0 else ''}{number(value, digits)}"


def epsilon(value: float | None) -> str:
    """A budget with four significant digits: ∞ for no finite one, a dash for none."""
    return DASH if value is None else "∞" if math.isinf(value) else f"{value:.4g}"


def bound(value: float | None) -> str:
    """A lower bound of a budget with three significant digits, rounded down; a dash for none."""
    return DASH if value is None else f"≥ {epsilon(rounded_down(value))}"


def plain(value: float) -> str:
    """A number as short as it can be said: "5", "0.00375"."""
    return f"{'−' if value < 0 else ''}{abs(value):,.6g}"


def join(items: Sequence[str]) -> str:
    """Items as running text: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1]))) if items else ""


def listed(settings: Iterable[str]) -> list[str]:
    """Settings that are the same up to their last value as one: of "epsilon=1" and "epsilon=2" one "epsilon=1, 2"."""
    ends: dict[str, list[str]] = {}
    for name, at, end in (setting.rpartition("=") for setting in settings):
        ends.setdefault(name + at, []).append(end)
    return [name + ", ".join(of_name) for name, of_name in ends.items()]


def markdown(text: str) -> Markup:
    """A text in Markdown as HTML; HTML in it is escaped."""
    from markdown_it import MarkdownIt  # which an audit of files does without

    return Markup(MarkdownIt("commonmark", {"html": False}).render(text))


@cache
def english() -> dict[str, dict[str, str]]:
    """Section of terms.yaml -> id -> its English: the one place where a word of a ledger or an audit is changed."""
    import yaml  # which an audit of files does without

    tables: dict[str, dict[str, str]] = yaml.load(
        (TEMPLATES / "terms.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader
    )
    return tables


def sentence(term: KnownGap | Explanation) -> str:
    """A gap or a reason as a sentence, with its numbers and names."""
    table = english()["gaps" if isinstance(term, KnownGap) else "reasons"]
    return str(table[term.id].format(**term.values))


def units(ids: Iterable[str]) -> str:
    """What one unit is, of each of these; several may be called the same."""
    texts = (str(english()["units"][name]) for name in ids if name != "any")
    return join(list(dict.fromkeys(texts)))


def conditions(ids: Iterable[str]) -> list[str]:
    """What a guarantee is conditional on."""
    return [str(english()["conditions"][name]) for name in ids]


def tested_on(preparation: Mapping[str, Any]) -> str:
    """What is held out for the test, of `Suite.preparation`; empty where nothing is, or nothing says."""
    name = preparation.get("split", preparation.get("protocol"))
    percent = {name: 100 * value for name, value in preparation.items() if isinstance(value, float)}
    return str(english()["splits"].get(name, "")).format(**{**preparation, **percent})


def groups(columns: Sequence[Column]) -> list[dict[str, object]]:
    """Runs of columns of one group: `name` and `span`."""
    return [{"name": name, "span": len(list(run))} for name, run in groupby(columns, lambda column: column.group)]


def capitalize_first(text: str) -> str:
    """The text with its first letter in upper case, the others as they are."""
    return text[:1].upper() + text[1:]


def label_of(experiment: str, labels: Mapping[str, str]) -> str:
    """The name of a system in tables; of what is no system, its id."""
    return labels.get(experiment, experiment)


@cache
def environment(folder: Path) -> Environment:
    """What draws the templates of a folder, all escaped. Raises (when one is drawn): a slot that nothing fills."""
    result = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    functions = (number, epsilon, plain, signed, bound, markdown, groups, capitalize_first, label_of)
    words = (conditions, sentence, tested_on)
    result.filters |= {"join_words": join} | {function.__name__: function for function in (*functions, *words)}
    result.globals |= {"column": Column, "charts": charts, "infinity": math.inf}
    if folder == TEMPLATES:  # the terms are YAML, which an audit of files does without
        result.globals["english"] = english()
    return result


def render(page: Page, revisions: Sequence[str] = (), home: bool = True) -> str:
    """A page as HTML; the same facts give the same bytes.

    revisions: git commits that its numbers are of; home: whether it lies in a site whose other pages it may link to.
    """

    def to(address: str) -> str:
        return relative(page.address, address)

    text = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # by which the policy allows the script
    about = {"anchor": anchors(), "to": to, "address": page.address, "home": home, "revisions": list(revisions)}
    template = environment(page.templates).get_template(page.template)
    return template.render(**about, script=Markup(text), digest=digest, **page.context)


def anchors() -> Callable[[str], str]:
    """Heading -> an identifier that no other part of a page has: GitHub's, so that links hold here and there."""
    used: Counter[str] = Counter()

    def anchor(heading: str) -> str:
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        used[name] += 1
        return name if used[name] == 1 else anchor(f"{name}-{used[name] - 1}")

    return anchor


def relative(source: str, target: str) -> str:
    """The address of a page, or a part of one, as seen from another; both from the root of the site."""
    return posixpath.relpath(target, posixpath.dirname(source) or ".")

"""The gallery of planted bugs stays what it says: every bug still applies, and names tests and audits that exist."""

import ast
import csv

import pytest

from tasks.audits import AUDITS
from tests.privacy.planted import MUTATIONS
from tests.privacy.planted.mutation import ROOT, Mutation
from tests.privacy.planted.table import PLACE


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_bug_applies_and_is_one_of_code(mutation: Mutation) -> None:
    """The piece is there once, and what stands there instead compiles to another program."""
    mutated = ast.parse(mutation.mutated())
    assert ast.dump(mutated) != ast.dump(ast.parse((ROOT / mutation.file).read_text(encoding="utf-8")))


def test_a_bug_whose_piece_is_gone_is_refused() -> None:
    with pytest.raises(ValueError, match="gone: the piece to replace is 0 times in"):
        Mutation("gone", "", "§1", MUTATIONS[0].file, "no such code", "").mutated()


def test_every_bug_has_a_name_of_its_own_a_section_and_a_test() -> None:
    methods = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    with PLACE.open(encoding="utf-8", newline="") as file:
        shown = {row["mistake"] for row in csv.DictReader(file)}
    assert shown - {""} == {mutation.name for mutation in MUTATIONS}
    for mutation in MUTATIONS:
        assert f"\n## {mutation.section} " in methods, mutation.name
        assert mutation.tests, mutation.name
        assert not mutation.audit or mutation.audit in AUDITS, mutation.name


def test_the_tests_that_bugs_name_exist() -> None:
    names = sorted({name for mutation in MUTATIONS for name in mutation.tests})
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {name.partition("::")[0] for name in names}}
    for name in names:
        file, _, function = name.partition("[")[0].partition("::")
        assert f"def {function.rpartition('::')[2]}(" in texts[file], name

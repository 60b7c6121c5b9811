"""Stage `perturb` as the authors' code has it: what passes as it is, and what its check finds."""

from pathlib import Path

import polars as pl
import pytest

from tasks.core import contracts
from tasks.datasets.encoding import encode
from tasks.stages import perturb
from tests.stages import test_perturb_networks as of
from tests.stages import tiny_networks as tiny

pytestmark = pytest.mark.usefixtures("inside")


def make() -> None:
    tiny.build(Path(), released=tiny.RELEASED)
    perturb.main("released")


def test_as_released_gender_passes_as_it_is_and_each_kind_of_data_claims_what_is_refuted() -> None:
    """A gender that is not known is two zeros; the one bit of the hash, the tweets and the occupation are perturbed."""
    schema = of.tables("released").schema
    true = pl.DataFrame(encode(of.TRUE["left/users"], schema.features), schema=schema.columns)
    noisy = of.features("released").sort("user")
    for column in ("gender=0", "gender=1"):
        assert noisy[column].equals(true[column])
    assert (noisy["gender=unknown"] == 0).all()
    assert noisy["hash"].max() > 1
    for kind, claimed in (("feature", 5.0), ("edge", 10.0), ("text", 7.5)):
        first, *others = of.ledger("released")["base", 0, "left", kind]
        assert (first.accounting, first.claimed_epsilon) == ("released", claimed)
        assert {entry.accounted_epsilon for entry in (first, *others)} == {None}
    lengths = of.tables("released").scan("posts").collect()["tokens"].list.len()
    assert lengths.equals(of.TRUE["left/posts"]["tokens"].list.len())


def test_what_the_authors_code_cannot_have_released_is_found() -> None:
    where = of.folder("released") / "features.parquet"
    right, contract = pl.read_parquet(where), contracts.features_schema(of.tables("released").schema.columns)
    for column, value in (("gender=0", 0.5), ("gender=unknown", 1.0), ("hash", 99.0), ("occupation=1", -99.0)):
        contracts.write(right.with_columns(pl.lit(value, pl.Float32).alias(column)), where, contract)
        assert of.broken("released") == {("left/features epsilon=5", column)}
    contracts.write(right, where, contract)

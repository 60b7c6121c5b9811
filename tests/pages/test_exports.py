"""Cards in the forms of others: all private systems of all suites, and a release, against the facts of both schemas."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy.sparse import csr_array

from flows.results import export, exported, private_cards
from tasks.core.errors import ConfigurationError
from tasks.pages import exports as release
from tasks.release.building import Wanted, build
from tasks.stages.report import collected


def record(properties: dict[str, Any], *required: str, texts: str = "") -> dict[str, Any]:
    """An object of these properties, and of texts of these names, and of no others."""
    every = dict.fromkeys(texts.split(), TEXT) | properties
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": every}


def one_of(*values: Any) -> dict[str, Any]:
    return {"enum": list(values)}


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
BASIC = "name data_curators description intended_use data_product_type data_product_region"
PRODUCTS = ("Summary statistics", "Machine learning model", "Dataset")
DEPLOYMENT = {
    "basic": record(
        {"publication_date": {"type": "string", "format": "date"}}
        | {"data_curators": TEXTS, "data_product_type": one_of(*PRODUCTS)},
        *(*BASIC.split(), "publication_date"),
        texts=BASIC,
    ),
    "dp_variant": record(
        {"variant_name": one_of("Pure DP", "Approximate DP", "Custom")}, texts="data_domain unprotected_quantities"
    ),
    "privacy_loss": record(
        {"privacy_parameters": record({key: {"type": "number"} for key in ("epsilon", "delta", "rho")})},
        texts="privacy_unit privacy_unit_details privacy_parameters_details",
    ),
    "deployment_model": record(
        {"model_name": one_of("Local", "Central", "Shuffle", "Federated")}
        | {"release_type": one_of("One release", "Many releases"), "data_source_type": one_of("Static", "Dynamic")}
        | {"access_type": one_of("Interactive", "Non-interactive")},
        texts="actors",
    ),
    "accounting": record({}, texts="post_processing composition"),
    "implementation": record({}, texts="preprocessing_and_hyperparameter_tuning mechanisms justification"),
    "administrative": record({"notes": {"type": "string"}, "registry_authors": TEXTS}, texts="sources"),
}
OPENDP = record(
    {
        "status": one_of("Draft", "Pending", "Approved"),
        "tier": one_of(1, 2, 3),
        "deployment": record(DEPLOYMENT, "basic"),
    },
    *("url_slug", "status", "tier", "deployment"),
    texts="url_slug",
)
"""Facts of schemas/deployments-schema.yaml of opendp/deployments-registry-data at 3e9c812 (MIT): what it requires,
knows and enumerates, as far as we use it."""
CYCLONEDX = record(
    {
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "version": {"type": "integer"},
        "components": {
            "type": "array",
            "items": record(
                {
                    "type": {"const": "machine-learning-model"},
                    "name": TEXT,
                    "modelCard": record(
                        {"properties": {"type": "array", "items": record({"name": TEXT, "value": TEXT}, "name")}}
                    ),
                },
                *("type", "name"),
            ),
        },
    },
    *("bomFormat", "specVersion"),
)
"""The same of CycloneDX 1.6."""


def check(form: str, text: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text)
    checker = jsonschema.FormatChecker()
    jsonschema.validate(content, OPENDP if form == "opendp" else CYCLONEDX, format_checker=checker)
    return content


@pytest.mark.parametrize("suite", collected())
def test_every_private_system_has_its_card_in_both_forms(suite: str) -> None:
    for system, of in private_cards(suite).items():
        check("opendp", exported(system, *of, "opendp"))
        for model in check("cyclonedx", exported(system, *of, "cyclonedx"))["components"]:
            assert {"dprec:noise", "dprec:neighbouring"} <= {of["name"] for of in model["modelCard"]["properties"]}


def test_an_infinite_epsilon_is_left_out_with_its_reason() -> None:
    loss = check("opendp", export("gerai", "gerai-gerai", "opendp"))["deployment"]["privacy_loss"]
    assert "privacy_parameters" not in loss
    assert "no finite ε follows" in loss["privacy_parameters_details"]
    with pytest.raises(ConfigurationError, match="no private system of gerai"):
        export("gerai", "gerai-bpr", "opendp")


@pytest.mark.parametrize(("users", "items"), [(20, 120), (3_000, 120), (3_000, 5)])
def test_a_release_has_its_card_in_both_forms(users: int, items: int) -> None:
    """Of counts alone and of few items with pairs, too."""
    rows = csr_array(np.random.default_rng(0).random((users, items)) < 0.1).astype(np.int8)
    wanted = Wanted(8.0, 1e-6, users, "svd", evaluate=True, audited=True, seed=1)
    ledger = build(rows, wanted, ["catalogue-seen"]).ledger
    texts = release.records(ledger, "2026-01-01")
    record = check("opendp", texts["opendp.json"])["deployment"]
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": pytest.approx(8), "delta": 1e-6}
    assert release.card(ledger).count("one random user") == 0
    built = build(rows, replace(wanted, delta=0.6, audited=False), [])
    large = built.ledger
    assert [gap["id"] for gap in large["gaps"]] == [built.marks["gaps"]] == ["large-delta"]
    for text in (
        release.card(large),
        release.plain_text("paragraph", ledger=large, files=[]),
        *release.records(large, "2026-01-01").values(),
    ):
        assert "one random user" in text or ("CycloneDX" in text and "large-delta" in text)
    assert "no --catalogue was given" in record["dp_variant"]["unprotected_quantities"]
    [model] = check("cyclonedx", texts["cyclonedx.json"])["components"]
    assert {"name": "dprec:noise", "value": "research"} in model["modelCard"]["properties"]

"""Stage `perturb`: processed data under local mechanisms, once per budget and seed.

Writes data/perturbed/<name>/: ledger.json, and what the mechanism's module in `tasks.config.fields` says. That has
a function of the name of its entry, the entry, the folder of the processed data and the one to be written into, which
returns the ledger of each release.
"""

from __future__ import annotations

from tasks.config.fields import FEATURES, NETWORKS
from tasks.config.params import entry, load
from tasks.config.tasks import resolve
from tasks.core.errors import PrivacyError
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import PERTURBED, PROCESSED, atomic_write, require_passed, write_json


def main(name: str) -> None:
    """Perturb data set `name`."""
    perturbed = entry("perturbed", name, load().perturbed)
    require_passed("processed", perturbed.data)
    with atomic_write(PERTURBED / name) as target:
        try:
            perturb = resolve((FEATURES | NETWORKS)[perturbed.mechanism])
            records = perturb(name, perturbed, PROCESSED / perturbed.data, target)
        except ValueError as error:
            raise PrivacyError(f"perturbed.{name}: {error}") from error
        write_json(target / "ledger.json", records)


if __name__ == "__main__":
    run_stage(main)

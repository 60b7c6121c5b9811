"""The suites that benchmarks make up are suites still."""

from pathlib import Path

from tasks.config.params import load
from tasks.config.references import check
from tests.benchmarks import bench_scale


def test_the_suite_on_own_data_of_any_size_can_be_run(tmp_path: Path) -> None:
    root = tmp_path / "project"
    bench_scale.copy(root)
    params = load(root / "params.yaml")
    check(params, root / "params.yaml")
    assert set(params.experiments) == {f"own-{system}" for system in bench_scale.SETTINGS}

"""No circle among modules: imports that only type-checkers follow count, too."""

from graphlib import TopologicalSorter

import grimp


def test_no_import_leads_back_to_where_it_started() -> None:
    graph = grimp.build_graph("tasks", "flows", cache_dir=None)
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(needs) > 300
    TopologicalSorter(needs).prepare()  # raises a CycleError that names the circle

"""The library: mechanisms, accounting, audits, attacks and metrics for notebooks and other programs.

In a clone `pip install .` (or `'.[audit]'`) brings all of it and `dprec audit`; `'.[pipeline]'` brings what trains
models and regenerates papers. Names here are stable: one that goes is announced in CHANGELOG.md a version before.

    from dprec import accounting, attacks, audits, mechanisms, metrics

Arrays of NumPy in and out, `rng` a `numpy.random.Generator`. docs/quickstart.ipynb shows each in use.
"""

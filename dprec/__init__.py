"""The library: mechanisms, accounting, audits, attacks, metrics and releases for notebooks and other programs.

In a clone `pip install .` (or `'.[audit]'`) brings all of it and `dprec audit`; `'.[pipeline]'` brings what trains
models and regenerates papers. Names here are stable: one that goes is announced in CHANGELOG.md a version before.

    from dprec import accounting, attacks, audits, mechanisms, metrics, release

Arrays of NumPy in and out, `rng` a `numpy.random.Generator`. docs/quickstart.ipynb shows each in use.
`import dprec` loads a module once it is asked for, as in `dprec.audits`; `dprec.__version__` is the installed version.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["accounting", "attacks", "audits", "mechanisms", "metrics", "release"]

if TYPE_CHECKING:
    from dprec import accounting, attacks, audits, mechanisms, metrics, release

    __version__: str
else:

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # a tenth of a second to import

            return version("dprec")
        if name in __all__:
            return import_module(f"dprec.{name}")
        raise AttributeError(f"module 'dprec' has no attribute {name!r}")

"""Mechanisms, their accounting, the ledger, and audits.

Other tools call mechanisms by shorter names, such as `tasks.privacy.piecewise.perturb`; the search path has them found.
The project's own code uses `tasks.privacy.mechanisms`.
"""

__path__ = [*__path__, *(f"{folder}/mechanisms" for folder in __path__)]

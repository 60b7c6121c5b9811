"""`python -m tests.privacy.planted [NAME ...]`: see the package. Names choose some bugs, and write no table."""

import sys

from tests.privacy.planted import MUTATIONS
from tests.privacy.planted.runner import asked_of, run
from tests.privacy.planted.table import PLACE, unexpected, written


def main(names: list[str]) -> int:
    """0 if all controls pass, a test fails for every bug, and every audit asked refutes."""
    chosen = [mutation for mutation in MUTATIONS if not names or mutation.name in names]
    runs = run(asked_of(chosen))
    wrong = unexpected(runs)
    print("\n".join(wrong) or "every bug was noticed", flush=True)
    if not names:
        PLACE.write_text(written(MUTATIONS, runs), encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`make fuzz`: as many cases as fit into SECONDS, other ones than the tests', or one case again.

python -m tests.fuzz --seconds 1200
python -m tests.fuzz "custom, parquet" 4711
"""

import argparse
import faulthandler
import sys
import time
import traceback
from itertools import count

from tests.fuzz.cases import Wrong, run
from tests.fuzz.samples import samples


def main() -> int:
    """Exit code: 1 if a case went wrong."""
    faulthandler.enable()  # a library that ends the process is a finding
    parser = argparse.ArgumentParser("python -m tests.fuzz")
    parser.add_argument("sample", nargs="?", choices=[*samples()])
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=1_000_000, help="number of the first case")
    chosen = parser.parse_args()
    if chosen.number is not None:
        print(run(chosen.sample, chosen.number) or "loads")
        return 0
    names, wrong, cases = [chosen.sample] if chosen.sample else [*samples()], dict[str, str](), 0
    ends = time.monotonic() + chosen.seconds
    for number in count(chosen.first):
        for name in names:
            cases += 1
            try:
                run(name, number)
            except Wrong as error:
                cause = error.__cause__
                place = traceback.extract_tb(cause.__traceback__)[-1] if cause else None
                where = f"{name} {place.filename}:{place.lineno}" if place else f"{name} {error}"[:60]
                if where not in wrong:
                    wrong[where] = str(error)
                    print(f"WRONG {error}"[:600], flush=True)
            if time.monotonic() > ends:
                print(f"{cases:,} cases, {len(wrong)} kinds of failure")
                return bool(wrong)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Stage `code`: the key of every other stage, in a code.json next to the dvc.yaml that describes it."""

import json
import os
import sys

from tasks.config import references
from tasks.config.params import load
from tasks.core.errors import ConfigurationError, DprecError
from tasks.pipeline import dvc_files, keys
from tasks.pipeline.common import atomic_write, private


def main() -> None:
    """Write every code.json."""
    params = load()
    references.check(params)
    for path in dvc_files.outdated_files(params):
        raise ConfigurationError(f"{path}: behind the parameters or the table of stages; run `dprec pipeline`")
    for path, content in keys.contents(params).items():
        with atomic_write(path) as target:
            target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    private()
    try:
        main()
    except (DprecError, OSError) as error:
        if os.environ.get("DPREC_DEBUG") == "1":
            raise
        print(f"code: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(1) from None

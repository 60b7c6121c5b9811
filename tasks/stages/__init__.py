"""One module per DVC stage, and what stages share."""

import sys

if sys.argv[0] == "-m":  # `python -m tasks.stages.STAGE`, before its module is loaded; also for plain `dvc repro`
    from tasks.stages.parent import end_with_parent

    end_with_parent()

"""One module per DVC stage."""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # stages run side by side, and sums must not depend on thread counts

if sys.argv[0] == "-m":  # `python -m tasks.stages.STAGE`, before its module is loaded; also for plain `dvc repro`
    from tasks.pipeline.parent import end_with_parent, keep_freed_memory

    end_with_parent()
    keep_freed_memory()

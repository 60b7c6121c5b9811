"""What a stage does with memory that it freed."""

from __future__ import annotations

import ctypes

DECIDES_NOTHING = True
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, ARRAY_BYTES = 2**31 - 1, 2**28


def keep_freed_memory() -> bool:
    """Let glibc keep up to 2 GiB of freed memory for what is needed next; whether there is a glibc that does.

    By default arrays over 32 MiB are given back to the kernel each time and come back cleared, page by page: more than
    half the time of models that make such arrays in every step. Arrays over 256 MiB are still given back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_THRESHOLD, ARRAY_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))

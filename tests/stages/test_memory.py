"""Freed memory is kept by stages."""

import pytest

from tests.command import python

FREED = """
import resource, numpy
from tasks.pipeline.parent import keep_freed_memory
if {keep}:
    print(keep_freed_memory())
size = 12_000_000  # 96 MB
for _ in range(2):
    numpy.ones(size)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    numpy.ones(size)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def freed(*, keep: bool) -> list[str]:
    """What a fresh process says: whether glibc does it, and the page faults of ten arrays, one after another."""
    return python(FREED.format(keep=keep)).split()


def test_memory_of_a_large_array_serves_the_next_one():
    [does, kept], [returned] = freed(keep=True), freed(keep=False)
    if does == "False":
        pytest.skip("no glibc here")
    assert int(kept) < 100 < int(returned)

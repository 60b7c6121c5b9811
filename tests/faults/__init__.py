"""Faults put into the demo, cut small, on purpose: kills, damaged state, full disks, other commands next to a run.

`python -m tests.faults` (`make faults`) counts how each ends: whether the next run, without anyone's help, has the
results of a run that nothing disturbed. It writes docs/faults.csv.
"""

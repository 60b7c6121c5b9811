"""Recommenders that `dprec audit --command` is tried on, each a script of its own."""

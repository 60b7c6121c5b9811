"""Gated graph networks over the graphs of sequences: SR-GNN and its descendants, public and private."""

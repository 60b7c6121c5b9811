"""GERAI (Zhang et al., WWW 2021) and the graph network it makes private."""

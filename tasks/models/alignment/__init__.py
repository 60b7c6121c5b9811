"""Alignment of two networks' user embeddings: who in one network is whom in the other (DP-CroSUE, docs/methods.md §6).

The method is that of Conneau, Lample, Ranzato, Denoyer and Jégou, "Word translation without parallel data" (ICLR 2018),
called MUSE here: an orthogonal map found by adversarial training or from a few anchors, refined by Procrustes on mutual
nearest neighbours under CSLS.
"""

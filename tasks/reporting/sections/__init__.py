"""One module per kind of evidence that a page shows."""

"""One module per DVC stage, and what stages share."""

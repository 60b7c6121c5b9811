"""Pages: templates, charts and the English of all terms, over `tasks.results`. Computes only what a chart needs."""

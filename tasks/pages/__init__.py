"""Pages: templates, charts and the English of all terms. Reads `tasks.results`; computes nothing but what a chart needs."""

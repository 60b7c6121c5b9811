"""Results and their files, tables, charts and claims: what sections are made of."""

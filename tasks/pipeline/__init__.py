"""What runs stages: their table, dvc.yaml files, keys of code, provenance, units of work."""

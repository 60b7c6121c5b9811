"""The parameter files as types, and what their entries say of one another."""

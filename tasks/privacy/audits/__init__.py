"""Lower bounds on epsilon by attack, on worst-case neighbours and on whole training runs."""

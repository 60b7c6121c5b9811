"""What tables must hold, and the checks that say so."""

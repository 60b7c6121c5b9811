"""What results are held against: papers as data, their printed numbers and claims. Numbers and names alone."""

"""Rating prediction with users, friends and an untrusted recommender as parties that exchange messages."""

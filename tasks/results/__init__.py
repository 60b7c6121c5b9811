"""Results: tidy tables of ids, numbers and events, and what is judged from them. Holds no English, knows no page."""

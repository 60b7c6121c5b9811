"""The pages of one suite: the report of one screen, and a page for each kind of evidence behind it."""

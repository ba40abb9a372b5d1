"""Charts' numbers as tables, and tables as files. Knows nothing about HTTP or the database."""

"""Sources: from an exposition text to canonical tier counters. One table an engine kind; no database writes here."""

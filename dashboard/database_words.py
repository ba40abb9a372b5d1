"""Why the database cannot be used now, as a sentence for whoever can mend that. Knows SQLite's and PostgreSQL's words.

What nobody but us can mend (a query that is wrong) has no sentence: that is for the log.
"""

import re

from django.db import DatabaseError

_FULL = "The disk of the database is full: nothing can be stored until there is room on it. What is stored stays."
_READ_ONLY = (
    "The database can only be read: its file or its file system is not to be written to, or its server is a copy that "
    "follows another."
)
_UNREADABLE = "The database's file cannot be opened: has its folder, TIERSCOPE_HOME, gone, or is it somebody else's?"
_BROKEN = "The database's file cannot be read or written: its disk has an error, or no room."
_NO_TABLES = (
    "The database has no tables of this version. `make run` makes them; a command finds that database by the same "
    "variables (TIERSCOPE_HOME, DATABASE_URL), in the same folder."
)
_BUSY = "The database was busy for too long; try again."
_AWAY = "The database's server does not answer: is it running, and is DATABASE_URL right?"
_SENTENCES = {  # by what the error says
    "disk is full": _FULL,
    "no space left on device": _FULL,
    "readonly database": _READ_ONLY,
    "in a read-only transaction": _READ_ONLY,
    "unable to open database file": _UNREADABLE,
    "disk i/o error": _BROKEN,
    "no such table": _NO_TABLES,
    "no such column": _NO_TABLES,
    r'relation ".*" does not exist': _NO_TABLES,
    r"column .* does not exist": _NO_TABLES,
    "database is locked": _BUSY,
    "lock timeout": _BUSY,
    "connection failed": _AWAY,
    "connection is bad": _AWAY,
    "server closed the connection": _AWAY,
    "the connection is lost": _AWAY,
    "terminating connection": _AWAY,
}


_OF_STORAGE = frozenset({_FULL, _READ_ONLY, _UNREADABLE, _BROKEN, _AWAY})


def storage_problem(error: BaseException | None) -> str:
    """`why_not` where no traceback helps: whatever was to be stored, it would not have been."""
    told = why_not(error)
    return told if told in _OF_STORAGE else ""


def why_not(error: BaseException | None) -> str:
    """ "" for another error, or where only a traceback helps."""
    if not isinstance(error, DatabaseError):
        return ""
    words = str(error).lower()
    return next((sentence for said, sentence in _SENTENCES.items() if re.search(said, words)), "")

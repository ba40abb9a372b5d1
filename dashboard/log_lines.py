"""What the log leaves out: news that are none, and tracebacks of what nobody has to look for in our code."""

import logging


def is_news(record: logging.LogRecord) -> bool:
    """A probe that asks every few seconds says itself what it found; 503 means that something is down, not an error."""
    path = getattr(getattr(record, "request", None), "path", "")
    return (path, getattr(record, "status_code", 0)) != ("/healthz", 503)


def in_short(record: logging.LogRecord) -> bool:
    """What a client did wrong (a host name, too many fields) is one line: where in Django it was noticed is no news.

    So is a database that cannot be used, which a task a second would tell in 80 lines.
    """
    told = _of_the_database(record)
    if told:
        record.msg, record.args = f"{record.getMessage()} – {told}", ()
    if told or getattr(record, "status_code", 500) < 500:
        record.exc_info = record.exc_text = None
    return True


def _of_the_database(record: logging.LogRecord) -> str:
    from dashboard.database_words import storage_problem  # imports Django's database, and settings import this module

    return storage_problem(record.exc_info[1]) if record.exc_info else ""

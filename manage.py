#!/usr/bin/env python
"""Django's command line. A variable with a wrong value or a database that cannot be used is one sentence."""

import os
import sys

from django.db import DatabaseError
from environs import EnvError

from scripts.environment import sentence

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except EnvError as error:
        sys.exit(sentence(error))
    except DatabaseError as error:
        from dashboard.database_words import why_not

        told = "" if "--traceback" in sys.argv else why_not(error)
        if not told:
            raise
        sys.exit(told)

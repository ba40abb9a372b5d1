#!/usr/bin/env python
"""Django's command line. A variable with a wrong value is one sentence, as it is for the launcher."""

import os
import sys

from environs import EnvError

from scripts.environment import sentence

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except EnvError as error:
        sys.exit(sentence(error))

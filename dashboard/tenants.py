"""Whose blocks a request may share: the tenant of its API key, and what the client adds to that. Knows no database.

A tenant is the admin's word, `cache_salt` the client's. Both enter the root of a prompt's block keys, so that no salt
that a client thinks of leads to the blocks of another tenant.
"""

import json
import re

COMMON = "common"  # on pages and in metrics: requests whose key has no tenant
OTHER = "other"  # in metrics: all tenants beyond those that are counted by name
MAX_LENGTH = 32  # what the detail of a series holds
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def check_tenant(name: str) -> None:
    """Raises ValueError. An empty name is none: the common pool."""
    if name in (COMMON, OTHER):
        raise ValueError(f"“{name}” is what pages call a group of requests; choose another name.")
    if name and not (len(name) <= MAX_LENGTH and _NAME.fullmatch(name)):
        raise ValueError(
            f"“{name[:MAX_LENGTH]}” is no tenant; expected up to {MAX_LENGTH} lower-case letters, digits, dots, dashes "
            "and underscores, the first a letter or digit."
        )


def shown(tenant: str) -> str:
    """How pages and metrics call it."""
    return tenant or COMMON


def root_salt(tenant: str, cache_salt: str) -> str:
    """One salt of both; no two pairs give the same, and the common pool without a salt keeps its empty one."""
    return json.dumps([tenant, cache_salt]) if tenant or cache_salt else ""

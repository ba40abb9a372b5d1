"""The engine: token ids in, token ids out, over a tiered prefix cache. Knows nothing about Django, Celery or HTTP."""

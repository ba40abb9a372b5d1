"""Requests through the real tiers without their bytes: what each tier would have served, evicted and moved."""

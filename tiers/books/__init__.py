"""The tables behind the tiers' books, in integer arrays, and what is compiled over them.

Knows nothing about bytes, files, servers or threads.
"""

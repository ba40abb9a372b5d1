"""Eviction policies, compiled over the tables. Each is closed under prefix: a block leaves after the blocks that follow
it in that tier, so what a tier holds can always be found from the start of a prompt. What is being read never leaves.
"""

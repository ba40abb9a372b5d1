"""What tiers can refuse or fail at, each with a sentence for a person. Knows nothing about how it is handled."""


class CapacityError(Exception):
    """More blocks were asked for than the gpu tier has at all: waiting cannot help."""


class RefusedError(Exception):
    """A size that cannot be given; the old one stays. The text says why."""


class CorruptError(Exception):
    """What lies in a tier is not the block that was stored there: torn, altered, foreign or gone."""

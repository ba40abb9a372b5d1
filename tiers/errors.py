"""What tiers can refuse or fail at, each with a sentence for a person. Knows nothing about how it is handled."""


class CapacityError(Exception):
    """More blocks were asked for than the gpu tier has at all: waiting cannot help."""


class RefusedError(Exception):
    """A size that cannot be given; the old one stays. The text says why."""


class CorruptError(Exception):
    """What lies in a tier is not the block that was stored there: torn, altered, foreign or gone."""


class GoneError(CorruptError):
    """The block is not there any more. Where others may remove blocks, too, that is a miss and no damage."""


class UnreachableError(OSError):
    """What a tier's server holds cannot be had now: refused, too late, or not even asked because it failed before."""


class NoRoomError(OSError):
    """The block is not stored: its server has no room that is not needed by others."""

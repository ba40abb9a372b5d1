"""What a model's files are refused with. Knows nothing about what is in them, and needs no torch."""


class WeightsError(ValueError):
    """The model's files cannot be used; the message is one sentence that says which and why."""

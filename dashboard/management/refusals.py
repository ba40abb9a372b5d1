"""What a command says where a value was refused: for a person who typed arguments, and sees no form."""

from django.core.exceptions import ValidationError

from dashboard.models_sources import NAME_WORDS

_NAMELESS = ("This field", "Ensure this value", "Enter a valid value")  # how Django's own sentences begin


def sentence(error: ValidationError) -> str:
    """All of them; those that a form would show beside a field begin with its name."""
    told = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
    return " ".join(_one(name, words) for name, many in told.items() for words in many)


def _one(name: str, words: str) -> str:
    if not words.startswith(_NAMELESS):
        return words
    expected = f" {NAME_WORDS}" if (name, words) == ("name", "Enter a valid value.") else ""
    return f"{name}: {words}{expected}"

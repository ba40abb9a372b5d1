"""The small files of a Hugging Face folder: JSON objects, the chat template. Knows nothing about weights."""

import json
from pathlib import Path
from typing import Any

from engine.chat_template import ChatTemplate
from engine.weights_error import WeightsError


def chat_template_of(folder: Path, settings: dict[str, Any]) -> ChatTemplate | None:
    file = folder / "chat_template.jinja"
    source = file.read_text("utf-8") if file.is_file() else settings.get("chat_template")
    if isinstance(source, list):
        named = {entry["name"]: entry["template"] for entry in source}
        source = named.get("default")
    if not source:
        return None
    return ChatTemplate(
        source, bos_token=_token_text(settings.get("bos_token")), eos_token=_token_text(settings.get("eos_token"))
    )


def _token_text(token: Any) -> str:
    """A special token is its text, or an object that has it."""
    return str(token.get("content", "")) if isinstance(token, dict) else token or ""


def optional_json(path: Path) -> dict[str, Any]:
    return json_of(path) if path.is_file() else {}


def json_of(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise WeightsError(f"{path} holds a {type(value).__name__}; expected an object.")
    return value

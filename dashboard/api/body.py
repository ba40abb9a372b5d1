"""The body of a request to /v1, from bytes to a JSON object. Knows no field of it.

JSON as RFC 8259 has it: UTF-8, no NaN. A name that is twice in one object is refused: two readers could take
different values of it.
"""

import json
from collections import Counter
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from dashboard.api.errors import ApiError

_SHOWN = 60


class BodyParser(Parser):
    """What ninja reads bodies with. Raises ApiError 400 or 415 with one sentence."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        _check_headers(request)
        return read_object(request.body)


def _check_headers(request: HttpRequest) -> None:
    """A body without a type is taken for JSON; one that says to be something else is not."""
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise _unread(f"The body is encoded as {encoding[:_SHOWN]}; send it as it is.")
    said = request.content_type or ""
    if said not in ("", "application/json"):
        raise _unread(f"The body is said to be {said[:_SHOWN]}; expected application/json.")


def _unread(sentence: str) -> ApiError:
    return ApiError(415, sentence, code="unsupported_media_type")


def read_object(body: bytes) -> dict[str, Any]:
    """Raises ApiError 400."""
    try:
        told = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _invalid(f"The body is not UTF-8: its byte {error.start:,} begins no character.") from None
    except json.JSONDecodeError as error:
        raise _invalid(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _invalid("The body is nested too deeply to be read.") from None
    except ValueError:  # what is left of json's: int() of thousands of digits
        raise _invalid("The body holds a number with more digits than are read.") from None
    if not isinstance(told, dict):
        raise _invalid(f"The body is {_kind(told)}; expected a JSON object.")
    return told


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _invalid(f"“{_printable(counts.most_common(1)[0][0])}” is there twice in one object of the body.")
    return told


def _printable(name: str) -> str:
    return name[:_SHOWN].encode("utf-8", "replace").decode()


def _no_constant(name: str) -> NoReturn:
    raise _invalid(f"The body is not JSON: it holds {name}, which JSON does not have.")


def _kind(told: Any) -> str:
    """What JSON calls it."""
    if told is None or isinstance(told, bool):
        return json.dumps(told)
    return "a list" if isinstance(told, list) else "a string" if isinstance(told, str) else "a number"


def _invalid(sentence: str) -> ApiError:
    return ApiError(400, sentence, code="invalid_body")

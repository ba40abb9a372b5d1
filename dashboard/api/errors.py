"""Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}. Knows nothing about what went wrong."""

from collections.abc import Sequence
from typing import Any

from django.http import JsonResponse

from dashboard.database_words import why_not

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
}


class ApiError(Exception):
    """A refusal with one sentence for the caller; `retry_after_seconds` says when trying again makes sense."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_seconds = retry_after_seconds

    def body(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JsonResponse:
        response = JsonResponse(self.body(), status=self.status)
        if self.retry_after_seconds is not None:
            response["Retry-After"] = str(self.retry_after_seconds)
        if self.status == 401:
            response["WWW-Authenticate"] = "Bearer"
        return response


def unexpected(error: BaseException | None) -> ApiError:
    """For what nobody caught."""
    if told := why_not(error):
        return ApiError(503, told, code="database_unavailable", retry_after_seconds=10)
    return ApiError(500, "Something went wrong on this server; its log says what.", code="internal_error")


def unknown_host() -> ApiError:
    sentence = "This server does not answer to that host name; TIERSCOPE_ALLOWED_HOSTS lists those it does."
    return ApiError(400, sentence, code="unknown_host")


def from_validation(errors: Sequence[dict[str, Any]]) -> ApiError:
    """The first thing that is wrong with a body, as a sentence that names the field."""
    # Of a union's members the one with a sentence of ours says more than "input should be a valid string".
    first = next((error for error in errors if error["type"] == "value_error"), errors[0])
    # ninja prefixes ("body", name of the view's argument)
    param = ".".join(str(part) for part in first["loc"][2:] if not _is_union_member(part)) or None
    said = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "value_error":
        param = first.get("ctx", {}).get("param", param)
        return ApiError(400, said, param=param, code="invalid_value")
    if first["type"] == "missing" and param:
        return ApiError(400, f"“{param}” is missing.", param=param, code="missing_field")
    if first["type"] == "missing":
        return ApiError(400, "The body is empty; expected a JSON object.", code="invalid_body")
    where = f"“{param}”" if param else "The body"
    return ApiError(400, f"{where} is not acceptable: {said[:1].lower()}{said[1:]}.", param=param, code="invalid_value")


def _is_union_member(part: object) -> bool:
    """Pydantic names the member of a union it tried ("list[TextPart]", "str"); the caller has no such field."""
    return isinstance(part, str) and (not part.isidentifier() or part in ("str", "int", "float", "bool"))

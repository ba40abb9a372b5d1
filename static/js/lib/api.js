// Talks to our own JSON addresses. An error is a sentence that can be shown.

export class ApiError extends Error {
  /** `status`: the server's; none where it did not answer. */
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

const TIMEOUT_MILLISECONDS = 20_000;

export function csrfToken() {
  return document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "";
}

let isLeaving = false;

/** Once: charts ask side by side, and a second navigation would break off the first. */
function leaveForLogin() {
  if (isLeaving) return;
  isLeaving = true;
  location.assign(`/login/?next=${encodeURIComponent(location.pathname + location.search)}`);
}

async function answer(response) {
  if (response.status === 401) {
    leaveForLogin();
    throw new ApiError("Your session has ended; log in again.");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(body?.error ?? `The server answered with status ${response.status}.`, response.status);
  return body;
}

async function call(url, options) {
  try {
    return await answer(await fetch(url, { ...options, signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) }));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError("The server cannot be reached.");
  }
}

export const getJson = (url) => call(url, {});
export const postJson = (url, body = {}) =>
  call(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
    body: JSON.stringify(body),
  });

export const postBytes = (url, bytes) =>
  call(url, {
    method: "POST",
    headers: { "Content-Type": "application/octet-stream", "X-CSRFToken": csrfToken() },
    body: bytes,
  });

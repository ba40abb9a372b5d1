// Reads an OpenAI-shaped answer as it streams: server-sent events over fetch, since EventSource cannot POST.

import { csrfToken } from "../lib/api.js";

export class ChatError extends Error {}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
  if (rest) yield rest;
}

async function refusal(response) {
  const body = await response.json().catch(() => null);
  if (response.status === 401) return "Your session has ended: reload the page and log in.";
  return body?.error?.message ?? `The server answered with status ${response.status}.`;
}

// Yields the chunks of one answer. `signal` stops it, which ends the request in the engine too.
export async function* complete(request, signal) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
    body: JSON.stringify({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
      tierscope: { return_prompt_tokens: true },
    }),
    signal,
  });
  if (!response.ok) throw new ChatError(await refusal(response));
  for await (const line of lines(response.body)) {
    if (!line.startsWith("data:")) continue;
    const data = line.slice(5).trim();
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ChatError(chunk.error.message);
    yield chunk;
  }
}

export async function models() {
  const response = await fetch("/v1/models");
  if (!response.ok) throw new ChatError(await refusal(response));
  return (await response.json()).data.map((model) => model.id);
}

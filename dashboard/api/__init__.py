"""The OpenAI-compatible /v1: schemas, errors, authentication, answers. Never imports torch or the engine."""

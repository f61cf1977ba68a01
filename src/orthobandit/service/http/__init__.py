"""Layers that every request passes: limits, tokens, idempotency keys, problem documents, logs and metrics."""

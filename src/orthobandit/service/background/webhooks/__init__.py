"""Webhooks: what happens in experiments, sent to whoever wants to know. Signed as Standard Webhooks says."""

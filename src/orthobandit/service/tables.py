"""The service's own tables, beside those of the experiments in the same database."""

from orthobandit.experiment.store.schema import DELIVERIES, METADATA, NEWS, TOKENS, WEBHOOKS

__all__ = ["DELIVERIES", "METADATA", "NEWS", "TOKENS", "WEBHOOKS"]

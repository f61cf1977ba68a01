"""The service's own tables, beside those of the experiments in the same database."""

from orthobandit.experiment.store.sql.service_schema import (
    ACTIONS,
    DELIVERIES,
    HISTORY,
    METADATA,
    NEWS,
    SESSIONS,
    TOKENS,
    WEBHOOKS,
)

__all__ = ["ACTIONS", "DELIVERIES", "HISTORY", "METADATA", "NEWS", "SESSIONS", "TOKENS", "WEBHOOKS"]

"""Background work: one server of each database settles proposals, watches experiments and sends webhooks."""

"""Work by the clock: one server of a database settles, watches and sends webhooks for all."""

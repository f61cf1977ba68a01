"""What one server does for all by the clock: settling, watching, webhooks."""

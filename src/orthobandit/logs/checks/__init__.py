"""Is a log what an analysis takes it for? ``diagnostics`` has all checks; ``drift`` looks for change."""

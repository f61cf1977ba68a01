"""The store in SQLite or PostgreSQL: tables, statements, reading, writing and migrations."""

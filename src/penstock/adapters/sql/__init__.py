"""Statements (`*.sql`), row formats and rules shared by SQLite and PostgreSQL."""

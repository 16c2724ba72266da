"""`penstock doctor`: checks every configured component, and says what to do. Read-only."""

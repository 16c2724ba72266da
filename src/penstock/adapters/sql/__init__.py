"""Row formats and rules shared by all SQL stores."""

"""The ports fulfilled by real things."""

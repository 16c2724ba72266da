"""A site that uses Django's tasks, as the tests of the backend have it."""

"""What the tests of the engine share."""

import pytest


@pytest.fixture(autouse=True)
def _patient(patient_postgres: None) -> None:
    """No test of the engine is about a database that hangs."""

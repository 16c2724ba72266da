"""Tests of what users test with: the plugin, on an app as a user has it."""

import pytest

from penstock import Penstock
from tests.integration.testing import shop


@pytest.fixture
def penstock_source() -> Penstock:
    return shop.app

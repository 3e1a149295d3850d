"""Lets the tests that the client's authors publish meet our server: pytest -p published system.py"""

import pytest

from server import server  # noqa: F401 (the fixture)


@pytest.fixture(scope="session", autouse=True)
def serve(server):  # noqa: F811
    yield

"""The database of notes, and doors to it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from binding_doors import DOORS, Door, open_door
from binding_world import APP, BINDING, NAME, OpenDoor, administer, as_login, made_database

from tenantry.bindings import Binding


@pytest.fixture(scope="module")
def notes_admin_url(postgres_admin_url: str) -> Iterator[str]:
    """A superuser's URL of the database of notes."""
    yield made_database(postgres_admin_url)
    administer(postgres_admin_url, f"DROP DATABASE {NAME} WITH (FORCE)")


@pytest.fixture
def notes_url(notes_admin_url: str) -> str:
    """The application's URL of the database of notes."""
    return as_login(notes_admin_url, APP)


@pytest.fixture
async def door_to(notes_url: str) -> AsyncIterator[OpenDoor]:
    """``await door_to(name, binding=…, size=…, url=…)``: a driver's door; closed after the test."""
    doors: list[Door] = []

    async def opened(name: str, *, binding: Binding = BINDING, size: int = 1, url: str = notes_url) -> Door:
        door = await open_door(name, url, binding, size)
        doors.append(door)
        return door

    yield opened
    for door in doors:
        await door.close()


@pytest.fixture(params=list(DOORS))
def name(request: pytest.FixtureRequest) -> str:
    """Every driver in turn."""
    return str(request.param)

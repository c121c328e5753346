"""The mesh in a browser: the picture follows a netsplit by itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser.tabs import DESK, PHONE, Tabs, go
from tests.support.mesh import Mesh, mesh
from tests.support.people import accounts_of
from tests.support.web import Site, settings_for, site_for

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(150)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Mesh, Site]]:
    """Two linked servers, and the page of one."""
    folder: Path = tmp_path_factory.mktemp("mesh")
    (folder / "spark").mkdir()
    accounts_of(folder / "spark", "ori", "ada")
    async with mesh(folder, ("spark", "thor"), (("spark", "thor"),)) as made:
        await made.linked()
        settings = settings_for(folder / "spark", made.members["spark"].port)
        async with site_for(settings) as site:
            yield made, site


async def test_the_picture_of_the_mesh_changes_in_a_netsplit(tabs: Tabs, two: tuple[Mesh, Site]) -> None:
    """On both screens, with nothing loaded again."""
    servers, site = two
    pages = [await tabs.enter(site, "ori", DESK), await tabs.enter(site, "ada", PHONE)]
    for page in pages:
        await go(page, "Mesh")
        await expect(page.locator("svg.mesh circle.node")).to_have_count(2)
        await page.evaluate("window.isStillHere = true")
        await expect(page.locator("svg.mesh .edge")).to_have_class("edge linked")
        await expect(page.locator("svg.mesh text.lag")).to_contain_text("ms")
    servers.proxy("spark", "thor").cut()
    for page in pages:
        await expect(page.locator("svg.mesh .edge")).to_have_class("edge down")
        await expect(page.locator("svg.mesh circle.node.alone")).to_have_count(2)
        await expect(page.locator("table .state")).to_have_text("down")
    servers.proxy("spark", "thor").heal()
    for page in pages:
        await expect(page.locator("svg.mesh .edge")).to_have_class("edge linked")
        await expect(page.locator("svg.mesh circle.node.alone")).to_have_count(0)
        assert await page.evaluate("window.isStillHere")

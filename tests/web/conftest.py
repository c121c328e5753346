"""A server with people, and its page."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.support.people import accounts_of, verifier
from tests.support.servers import serving
from tests.support.web import Site, settings_for, site_for


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    store = accounts_of(tmp_path, "ori", "ada")
    store.add(new_account("claude", UserClass.AGENT, verifier=verifier()))
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def site(tmp_path: Path, ircd: IRCd) -> AsyncIterator[Site]:
    async with site_for(settings_for(tmp_path, ircd.port)) as running:
        yield running

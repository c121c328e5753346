"""What is done beside the turns ends with the server."""

import asyncio

from culture.server.core.tasks import ServerTasks


async def test_what_was_started_a_moment_ago_leaves_nothing_unawaited() -> None:
    """Without its first step, what it was to await would never be awaited, which Python warns of."""
    ended = []

    async def inner() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("inner")

    work = inner()

    async def outer() -> None:
        await work

    tasks = ServerTasks()
    tasks.start(outer())
    await tasks.stop()
    assert ended == ["inner"]

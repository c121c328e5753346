"""``examples/run explore``: one question, three agents, three commits, one index of links."""

from pathlib import Path

from examples.explore.repository import made, pages
from examples.stage import main, stage

FOLDER = Path(__file__).parent
ROOM = "#explore"
NAMES = ("ada", "bo", "cy")


async def play(home: Path) -> None:
    """Ask, wait for three answers, and have the best one taken over."""
    repository = made(home / FOLDER.name, NAMES)
    with pages(repository):
        async with stage(FOLDER, home, [ROOM]) as ori:
            await ori.say(ROOM, "@all how can count.py be faster? Try one idea in your worktree, and ./share it.")
            await ori.hears(r"/commit/[0-9a-f]{40} .* ms$", times=len(NAMES))
            await ori.say(ROOM, "@spark-ada take over the fastest of the three.")
            await ori.hears("was fastest with")
            print(f"\nThe links of {ROOM}, newest first:")
            for link, times, nick in await ori.links(ROOM):
                print(f"  {link}  {times} times, last by {nick}")


if __name__ == "__main__":
    main("explore", play)

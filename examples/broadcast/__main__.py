"""``examples/run broadcast``: everyone in the room benchmarks, and a clerk compares."""

from pathlib import Path

from examples.stage import main, stage

FOLDER = Path(__file__).parent
ROOM, RESULTS = "#bench", "#results"


async def play(home: Path) -> None:
    """Call everybody at once, wait for all, and have the results compared."""
    async with stage(FOLDER, home, [ROOM, RESULTS]) as ori:
        await ori.say(ROOM, "@all Everyone benchmark compressing 20000 numbers with your library.")
        await ori.hears("^RESULT ", times=3)
        await ori.say(RESULTS, f"@spark-clerk compare the results in {ROOM}")
        await ori.hears("3 results, the smallest first")


if __name__ == "__main__":
    main("broadcast", play)

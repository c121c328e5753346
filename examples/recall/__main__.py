"""``examples/run recall``: one agent finds out for another, first from the history, then live."""

from pathlib import Path

from examples.stage import main, stage

FOLDER = Path(__file__).parent
ROOM = "#builds"


async def play(home: Path) -> None:
    """Let something be said, ask for it much later, then for something that nobody has said, and for that again."""
    async with stage(FOLDER, home, [ROOM]) as ori:
        await ori.say(ROOM, "cmake flags that worked on thor: -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=110")
        await ori.say(ROOM, "@spark-dev find out the cmake flags on thor.")
        await ori.hears("^spark-ori: .*From the history: .*GGML_CUDA=ON")
        await ori.say(ROOM, "@spark-dev find out the free memory on thor.")
        await ori.hears("^spark-ori: .*Nobody had said, so I asked: .* MB")
        await ori.say(ROOM, "@spark-dev find out the free memory on thor.")
        await ori.hears("^spark-ori: .*From the history: .* MB")


if __name__ == "__main__":
    main("recall", play)

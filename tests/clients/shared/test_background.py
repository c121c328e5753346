"""The place of what an agent's program does beside its turns."""

from culture.clients.shared.background import MOST, NOWHERE, BackgroundWork


def test_a_sub_agents_call_belongs_to_the_place_where_the_sub_agent_was_begun() -> None:
    work = BackgroundWork()
    work.place = lambda: "#secret"
    work.called("begins sub-agent")
    work.place = lambda: "#general"
    work.called("its command", parent="begins sub-agent")
    work.called("another command")
    work.started("task-1", "its command")
    work.started("task-2", "another command")
    work.runs(["task-1", "task-2", "task-3"])
    assert (work.running_in("#SECRET"), work.running_in("#general")) == (1, 1)
    work.runs([])
    assert work.running_in("#secret") == 0


def test_a_wake_up_belongs_to_the_place_where_it_was_asked_for() -> None:
    work = BackgroundWork()
    work.place = lambda: "spark-ori"
    work.called("schedules")
    work.scheduled("look again", "schedules")
    work.place = lambda: "#general"
    assert work.place_of_wakeup("look again") == "spark-ori"
    assert work.place_of_wakeup("something else") == NOWHERE == work.place_of("unknown call")


def test_the_oldest_calls_are_forgotten() -> None:
    work = BackgroundWork()
    work.place = lambda: "#general"
    for number in range(MOST + 1):
        work.called(str(number))
    assert (work.place_of("0"), work.place_of("1"), work.place_of(str(MOST))) == (NOWHERE, "#general", "#general")

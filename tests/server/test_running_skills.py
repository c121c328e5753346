"""Skills: found by entry points, run behind a guard, switched off when they fail while everybody else goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from culture.config.model import Operator, ServerConfig
from culture.server.errors import StartError
from culture.server.ircd import IRCd
from tests.support.client import Client, registered
from tests.support.clumsy import CAP, Clumsy, Steady
from tests.support.servers import Serve, config_for
from tests.support.skills import NO_SKILLS, install
from tests.support.waiting import PATIENCE

KINDS = {
    "clumsy": "Clumsy",
    "steady": "Steady",
    "takesjoin": "TakesJoin",
    "takessteady": "TakesSteady",
    "takesbatch": "TakesBatch",
    "lower": "Lower",
    "twice": "Twice",
    "noskill": "NoSkill",
    "othername": "Steady",
    "missing": "Missing",
}
BOTH = {"clumsy": {}, "steady": {}}
OFF = "the skill clumsy failed and is switched off until a restart: "
OVER = "tests.support.clumsy.Stumbled: over its own feet"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with the skills of these tests is installed."""
    skills = {name: f"tests.support.clumsy:{kind}" for name, kind in KINDS.items()}
    folder = install(tmp_path / "site", "culture-clumsy", skills)
    monkeypatch.syspath_prepend(str(folder))
    return folder


class Stage:
    """A server with the skills clumsy and steady, an operator and somebody else."""

    def __init__(self, ircd: IRCd, boss: Client, ori: Client) -> None:
        self.ircd = ircd
        self.boss = boss
        self.ori = ori

    @property
    def clumsy(self) -> Clumsy | None:
        skill = self.ircd.parts.skills.get("clumsy")
        assert skill is None or isinstance(skill, Clumsy)
        return skill

    @property
    def steady(self) -> Steady:
        skill = self.ircd.parts.skills.get("steady")
        assert isinstance(skill, Steady)
        return skill

    async def say(self, text: str) -> None:
        """Ori speaks in #general, and the boss hears it."""
        self.ori.send(f"PRIVMSG #general :{text}")
        await self.ori.sync()

    async def goes_on(self) -> None:
        """The clients, and the other skill, are as they were."""
        await self.say("hello")
        await self.boss.expect("PRIVMSG", "#general", "hello")
        assert self.steady.heard[-1] == "hello"
        assert [str(each) for each in await self.ori.ask("STEADY")] == [":spark STEADY spark-ori yes"]

    async def notices(self) -> list[str]:
        """What the operator is told until now."""
        return [message.params[-1] for message in await self.boss.sync() if message.verb == "NOTICE"]

    async def is_off(self) -> None:
        """The operator was told once, and the verb says so."""
        assert self.clumsy is None
        (answer,) = await self.ori.ask("STUMBLE fine")
        assert answer.params[:2] == ("STUMBLE", "SKILL_OFF") and answer.verb == "FAIL"
        assert "switched off" in answer.params[-1]


Open = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(serve: Serve) -> Open:
    """``async with stage(where="start") as on``: with what the skill clumsy is told."""

    @asynccontextmanager
    async def opened(caps: str = "", **settings: object) -> AsyncIterator[Stage]:
        operators = (Operator(name="boss", password="secret"),)
        skills = {"steady": {}, "clumsy": settings}
        async with (
            serve(skills=skills, operators=operators, **NO_SKILLS) as ircd,
            registered(ircd.port, "spark-boss") as boss,
            registered(ircd.port, "spark-ori", caps) as ori,
        ):
            await boss.join("#general")
            await boss.ask("OPER boss secret")
            await ori.join("#general")
            await boss.sync()
            yield Stage(ircd, boss, ori)

    return opened


@pytest.mark.requirement("D02", "D03", "D14")
async def test_hooks_hear_events_and_verbs_answer(stage: Open) -> None:
    async with stage() as on:
        await on.say("hello")
        assert on.clumsy is not None and on.clumsy.heard == ["hello"] == on.clumsy.listened
        assert on.clumsy.by[0] is not None and on.clumsy.by[0].user is on.ircd.parts.network.user("spark-ori")
        assert on.clumsy.host.by is None, "only while a hook runs"
        assert [str(each) for each in await on.ori.ask("STUMBLE fine")] == [":spark STUMBLED spark-ori fine"]
        (short,) = await on.ori.ask("STUMBLE")
        assert short.verb == "461"
        (page,) = [each for each in await on.ori.ask("HELP STUMBLE") if each.verb == "704"]
        assert page.params[-1] == "STUMBLE how"


async def test_a_hook_that_publishes_does_not_confuse_the_next(stage: Open) -> None:
    async with stage() as on:
        clumsy = on.clumsy
        assert clumsy is not None
        await on.say("aside")
        assert clumsy.heard == ["an answer to that", "aside"]
        assert clumsy.by[0] is None and clumsy.by[1] is not None
        assert on.ircd.parts.router.by is None


@pytest.mark.requirement("D01", "D05")
async def test_a_skill_is_nobody(stage: Open, serve: Serve) -> None:
    """D05: whoever asks who is here is not told of any skill."""
    questions = ("WHO *", "NAMES #general", "LUSERS", "LIST", "WHOIS clumsy", "ISON clumsy steady")
    async with stage() as on:
        users = {user.nick for user in on.ircd.parts.network.users.values()}
        assert users == {"spark-boss", "spark-ori"}
        for question in questions:
            answers = await on.boss.ask(question)
            assert not [each for each in answers if {"clumsy", "steady"} & set(each.params[2:-1])]
        (count,) = [each for each in await on.ori.ask("LUSERS") if each.verb == "251"]
        assert "2 users" in count.params[-1]


@pytest.mark.requirement("D04")
@pytest.mark.parametrize("how", ["hook", "exit", "cancelled"])
async def test_a_failing_hook_switches_the_skill_off(stage: Open, how: str, caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:
        clumsy = on.clumsy
        assert clumsy is not None
        await on.say(how)
        (told,) = await on.notices()
        assert told.startswith(f"*** {OFF}")
        await on.is_off()
        await on.goes_on()
        assert clumsy.heard == [how], "called no more"
        assert clumsy.listened == [], "and neither are its other hooks"
        assert await on.notices() == []
        with_traceback = [record for record in caplog.records if record.exc_info]
        assert [record.getMessage() for record in with_traceback] == [told.removeprefix("*** ")]
    assert clumsy.calls[-1] == "stop"


async def test_a_skill_that_answers_itself_without_end_is_switched_off(stage: Open) -> None:
    async with stage() as on:
        await on.say("echo")
        (told,) = await on.notices()
        assert told.startswith(f"*** {OFF}RecursionError")
        assert len([each for each in on.ori.seen if each.params[-1] == "echo"]) < 50
        await on.is_off()
        await on.goes_on()


@pytest.mark.requirement("D04")
@pytest.mark.parametrize("how", ["verb", "exit", "work", "then", "chain", "cancelled", "rows"])
@pytest.mark.parametrize("caps", ["", "batch labeled-response"])
async def test_a_failing_verb_is_answered_and_the_third_time_switched_off(stage: Open, how: str, caps: str) -> None:
    async with stage(caps) as on:
        tags = "@label=x " if caps else ""
        for _ in range(3):
            on.ori.send(f"{tags}STUMBLE {how}")
            answer = await on.ori.expect("FAIL", "STUMBLE", "INTERNAL_ERROR")
            if caps and how != "rows":
                assert answer.tags["label"] == "x"
            assert not [each for each in await on.ori.sync() if each.verb != "BATCH"]
        first, second, third = await on.notices()
        assert first == second and first.startswith("*** STUMBLE of the skill clumsy failed: ")
        assert third.startswith(f"*** {OFF}")
        await on.is_off()
        await on.goes_on()


@pytest.mark.parametrize("caps", ["", "batch labeled-response"])
async def test_what_a_verb_declines_is_no_failure(stage: Open, caps: str) -> None:
    async with stage(caps) as on:
        tags = "@label=x " if caps else ""
        for _ in range(4):
            (refused,) = await on.ori.ask(f"{tags}STUMBLE :refused work")
            assert refused.verb == "403" and refused.params[1] == "#nowhere"
            (failed,) = await on.ori.ask(f"{tags}STUMBLE :failed then")
            assert failed.params[:2] == ("STUMBLE", "TOO_CAREFUL")
            assert not caps or failed.tags["label"] == refused.tags["label"] == "x"
        assert on.clumsy is not None and await on.notices() == []


async def test_a_long_answer_that_fails_ends_with_the_failure(stage: Open) -> None:
    async with stage("batch labeled-response") as on:
        answers = await on.ori.ask("@label=x STUMBLE rows")
        assert [each.verb for each in answers] == ["BATCH", "STUMBLED", "FAIL", "BATCH"]


async def test_a_skill_switched_off_while_it_works_does_not_answer(stage: Open) -> None:
    async with stage() as on:
        (answer,) = await on.ori.ask("STUMBLE off")
        assert answer.params[:2] == ("STUMBLE", "SKILL_OFF")


@pytest.mark.requirement("D04")
@pytest.mark.parametrize("how", ["task", "cancelled task", "exiting task", "thread"])
async def test_what_fails_beside_the_turns_switches_the_skill_off(stage: Open, how: str) -> None:
    async with stage() as on:
        await on.say(how)
        told = await on.boss.expect("NOTICE", "spark-boss")
        assert told.params[-1].startswith(f"*** {OFF}")
        await on.is_off()
        await on.goes_on()


async def test_operators_are_told_from_any_thread(stage: Open) -> None:
    async with stage() as on:
        await on.say("telling")
        assert (await on.boss.expect("NOTICE")).params[-1] == "*** clumsy: from afar"


async def test_the_tasks_of_a_skill_end_with_it(stage: Open) -> None:
    async with stage() as on:
        clumsy = on.clumsy
        assert clumsy is not None
        await on.say("idle")
        assert not clumsy.cleaned.is_set()
        await on.say("hook")
        async with asyncio.timeout(PATIENCE):
            await clumsy.cleaned.wait()
        await on.goes_on()


async def test_a_skill_that_fails_when_somebody_leaves_takes_nothing_with_it(stage: Open) -> None:
    async with stage() as on:
        await on.say("gone")
        async with registered(on.ircd.port, "spark-kim") as kim:
            await kim.join("#general")
        await on.boss.expect("QUIT")
        assert on.ircd.parts.network.user("spark-kim") is None
        await on.ori.sync()
        await on.is_off()
        async with registered(on.ircd.port, "spark-kim"):
            pass
        await on.boss.sync()
        await on.goes_on()


@pytest.mark.requirement("D04")
@pytest.mark.parametrize("where", ["init", "places", "caps", "isupport", "start"])
async def test_a_skill_that_cannot_start_is_off_and_the_server_runs(stage: Open, where: str) -> None:
    async with stage(where=where) as on:
        assert on.ircd.parts.skills.off == {"clumsy": OVER}
        assert CAP not in on.ircd.parts.skills.caps() and "CLUMSY" not in on.ircd.parts.skills.isupport()
        await on.goes_on()
        (answer,) = await on.ori.ask("STUMBLE fine")
        if where in ("init", "places"):
            assert answer.verb == "421", "nobody knows yet which verbs it wants"
        else:
            assert answer.params[:2] == ("STUMBLE", "SKILL_OFF")


async def test_an_operator_who_comes_later_is_told_as_well(stage: Open) -> None:
    async with stage(where="start") as on:
        answers = await on.ori.ask("OPER boss secret")
        assert [each.params[-1] for each in answers if each.verb == "NOTICE"] == [f"*** {OFF}{OVER}"]


async def test_a_skill_that_cannot_stop_is_logged_and_the_server_stops(
    stage: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(where="stop") as on:
        steady = on.steady
    assert steady.stopped
    assert f"the skill clumsy did not stop: {OVER}" in caplog.messages


async def test_a_skill_that_hangs_when_it_stops_is_left(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"clumsy": {"where": "hang"}, "steady": {}}
    async with asyncio.timeout(PATIENCE):
        async with serve(skills=settings, limits={"shutdown_timeout": 0.05}, **NO_SKILLS) as ircd:
            steady = ircd.parts.skills.get("steady")
    assert isinstance(steady, Steady) and steady.stopped
    assert "the skill clumsy did not stop: TimeoutError" in caplog.messages


async def test_what_never_started_is_not_stopped_and_nothing_is_stopped_twice(serve: Serve) -> None:
    async with serve(skills=BOTH, **NO_SKILLS) as ircd:
        clumsy = ircd.parts.skills.get("clumsy")
        assert isinstance(clumsy, Clumsy)
    await ircd.stop("again")
    assert clumsy.calls == ["init", "places", "caps", "isupport", "start", "stop"]


@pytest.mark.requirement("D14")
@pytest.mark.parametrize(
    ("skills", "said"),
    [
        (
            {"nothing": {}},
            r"skills\.nothing: no skill of this name is installed; installed are .*clumsy, .*history, ",
        ),
        ({"clumsy": {"most": "x"}}, r"skills\.clumsy\.most: expected a whole number, found the text 'x'"),
        ({"clumsy": {"mots": 1}}, r"skills\.clumsy\.mots: unknown key \(did you mean most\?\)"),
        (
            {"noskill": {}},
            r"skills\.noskill: tests.support.clumsy:NoSkill of culture-clumsy is no culture.server.skill",
        ),
        ({"missing": {}}, r"skills\.missing: .* cannot be loaded: AttributeError"),
        ({"othername": {}}, r"skills\.othername: .* has another name: give it name = 'othername'"),
        ({"takesjoin": {}}, "the skill takesjoin wants the verb JOIN, which exists already"),
        ({"steady": {}, "takessteady": {}}, "the skill takessteady wants the verb STEADY, which exists already"),
        ({"lower": {}}, "the skill lower wants the verb 'lower', which must be of the letters A-Z"),
        ({"twice": {}}, "the skill twice wants a verb twice: the verb TWICE exists already"),
        ({"takesbatch": {}}, "the skill takesbatch offers the capability batch, which exists already"),
    ],
)
async def test_what_cannot_be_wanted_is_said_at_the_start(
    tmp_path: Path, skills: dict[str, dict[str, object]], said: str
) -> None:
    with pytest.raises(StartError, match=said):
        IRCd(config_for(tmp_path, skills=skills, **NO_SKILLS))
    # The folder is free again.
    async with IRCd(config_for(tmp_path, **NO_SKILLS)).running():
        pass


def test_two_packages_with_one_skill_are_refused(tmp_path: Path, package: Path) -> None:
    install(package, "culture-other", {"steady": "tests.support.clumsy:TakesSteady"})
    with pytest.raises(
        StartError, match=r"skills\.steady: installed twice, .* of culture-clumsy and .*: take one away"
    ):
        IRCd(config_for(tmp_path, skills={"steady": {}}, **NO_SKILLS))


@pytest.mark.parametrize("name", ["../steady", "Steady", "", "1", "a b"])
def test_a_skill_cannot_have_any_name(name: str) -> None:
    with pytest.raises(ValueError, match="must be a skill's name"):
        ServerConfig(skills={name: {}})


def test_a_built_in_skill_has_its_block_at_the_top() -> None:
    with pytest.raises(ValueError, match="its block history stands at the top of the file"):
        ServerConfig(skills={"history": {}})


def test_a_skill_without_settings_needs_none() -> None:
    assert ServerConfig.model_validate({"skills": {"steady": None}}).skills == {"steady": {}}


async def test_a_folder_is_the_skills_own(serve: Serve) -> None:
    async with serve(skills=BOTH, **NO_SKILLS) as ircd:
        clumsy, steady = (ircd.parts.skills.get(name) for name in BOTH)
        assert clumsy is not None and steady is not None
        assert clumsy.host.folder == ircd.parts.config.data_dir / "clumsy" != steady.host.folder
        assert clumsy.host.folder.stat().st_mode & 0o777 == 0o700


async def test_capabilities_of_a_skill_go_with_it(stage: Open) -> None:
    async with (
        stage() as on,
        registered(on.ircd.port, "spark-new", f"cap-notify {CAP}") as new,
        registered(on.ircd.port, "spark-old") as old,
    ):
        assert CAP in (await old.ask("CAP LS"))[0].params[-1]
        assert (await old.ask(f"CAP REQ {CAP}"))[0].params[1] == "ACK"
        await on.say("hook")
        assert [str(each) for each in await new.sync()] == [f":spark CAP spark-new DEL {CAP}"]
        assert await old.sync() == [], "who does not know CAP DEL is not sent it"
        for client in (new, old):
            (enabled,) = await client.ask("CAP LIST")
            assert CAP not in enabled.params[-1]
        (refused,) = await old.ask(f"CAP REQ {CAP}")
        assert refused.params[1] == "NAK"
        assert CAP not in (await old.ask("CAP LS"))[0].params[-1]


async def test_005_names_what_skills_bring(stage: Open) -> None:
    async with stage() as on:
        assert [each for each in await on.ori.ask("VERSION") if each.verb == "005" and "CLUMSY" in each.params]

"""One place, one prompt: what is said in one is in no other's, and each answer is a reply where it belongs."""

from datetime import UTC, datetime
from pathlib import Path

from culture.clients.shared.inbox import LATE, Inbox
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.protocol.vocabulary import UserClass
from culture.server.ircd import IRCd
from culture.transport import Message
from tests.clients.shared.test_asking import CLIENT
from tests.clients.shared.test_daemon import NICK, held
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.waiting import until

RULES = [
    {"when": "send it", "steps": [{"run": f"{CLIENT} send '#general' 'sent by hand'"}, {"say": "it is sent"}]},
    {"when": "count us", "steps": [{"say": "two of you"}]},
    {"when": "salary", "steps": [{"say": "I keep it to myself"}]},
]


async def reply(client: Client, place: str, text: str) -> str:
    """To which message the agent's words are a reply."""
    return (await client.expect("PRIVMSG", place, text)).tags["+draft/reply"]


async def test_what_waits_in_several_places_becomes_a_prompt_for_each(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "build", "steps": held(home)}, *RULES]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with (
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        registered(ircd.port, "spark-ann") as ann,
        running(config, NICK) as daemon,
    ):
        for person in (ori, ann):
            await person.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} build")
        await until(lambda: daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} count us")
        counted = (await ori.expect("PRIVMSG", "#general", f"@{NICK} count us")).tags["msgid"]
        ori.send(f"PRIVMSG {NICK} :my salary is 5000")
        told = (await ori.expect("PRIVMSG", NICK, "my salary is 5000")).tags["msgid"]
        ann.send(f"PRIVMSG #general :@{NICK} and me")
        await until(lambda: daemon.inbox.counts()[0] == 3)
        (home / "go").touch()
        assert await reply(ori, "#general", "two of you") == counted
        assert await reply(ori, "spark-ori", "I keep it to myself") == told
        await ann.sync()
        assert not [each for each in ann.seen if "salary" in each.params[-1] or "keep it" in each.params[-1]]
        # What it sends by itself is a reply, too, and so is what it then says.
        ori.send(f"PRIVMSG #general :@{NICK} send it")
        wanted = (await ori.expect("PRIVMSG", "#general", f"@{NICK} send it")).tags["msgid"]
        assert await reply(ori, "#general", "sent by hand") == wanted
    texts = [[line for line in each.splitlines() if line.startswith("[IRC")] for each in prompts(home / "work")]
    assert texts[1:3] == [
        [
            f"[IRC @mention in #general] <spark-ori> @{NICK} count us",
            f"[IRC @mention in #general] <spark-ann> @{NICK} and me",
        ],
        ["[IRC DM] <spark-ori> my salary is 5000"],
    ]


async def test_no_note_tells_one_place_what_was_said_in_private(ircd: IRCd, home: Path) -> None:
    """What a shortened or a new session is told of its tasks and its questions goes into the prompt of any place."""
    ask = f"timeout 1 {CLIENT} ask spark-ori 'shall I tell them the salary?'"
    rules = [{"when": "salary", "steps": [{"run": ask}, {"say": "I keep it to myself"}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules), "post_output": "always"})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG {NICK} :my salary is 5000")
        await ori.expect("PRIVMSG", "spark-ori", "I keep it to myself")
        await until(lambda: not daemon.work.busy and not daemon.questions.waiting)
        ori.send(f"PRIVMSG {NICK} :@{NICK} compact")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "shorten my context" in each.params[1])
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} what was the last task?")
        await ori.expect("PRIVMSG", "#general", where=lambda each: "last task" in each.params[1])
    last = prompts(home / "work")[-1]
    assert 'The last task was "(private)" from spark-ori.' in last
    assert "(you have asked and wait for an answer: q1)" in last
    assert "salary" not in last


def test_what_was_too_old_to_begin_a_turn_follows_in_its_own_place(tmp_path: Path) -> None:
    records = Records(tmp_path / "inbox.db")
    inbox = Inbox(records, Notes(records))

    def say(place: str, number: int, kind: UserClass = UserClass.HUMAN, *, stale: bool = False) -> None:
        private = not place.startswith("#")
        at = datetime.fromtimestamp(number, UTC)
        inbox.receive(Message(place, "spark-ori", f"{number}", at, f"m{number}", None, kind, private), stale=stale)

    def given() -> None:
        inbox.end(inbox.begin(inbox.next(), "x"), "done")

    say("spark-ori", 1, stale=True)
    assert not inbox.waiting
    say("#general", 2, stale=True)
    say("#general", 3, UserClass.AGENT)
    say("#GENERAL", 4)
    say("#build", 5)
    # While agents alone begin no turn, a person's place comes first.
    assert [mail.msgid for mail in inbox.next(people_first=True)] == ["m2", "m3", "m4"]
    assert [mail.msgid for mail in inbox.next()] == ["m2", "m3", "m4"]
    given()
    assert (inbox.waiting, inbox.counts()) == (True, (2, 0))
    (private,) = inbox.next()
    assert (private.msgid, private.remark) == ("m1", LATE)
    given()
    assert [mail.msgid for mail in inbox.next()] == ["m5"]
    say("#other", 6, UserClass.AGENT)
    given()
    say("#last", 7)
    assert [mail.msgid for mail in inbox.next(people_first=True)] == ["m7"]
    assert [mail.msgid for mail in inbox.next()] == ["m6"]
    records.close()

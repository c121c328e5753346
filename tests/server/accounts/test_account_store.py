"""The file of accounts: nothing in it is ever lost, half written, or shown to others."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.vocabulary import UserClass
from culture.server.auth import account_file
from culture.server.auth.account_store import AccountStore, Changes
from culture.server.auth.accounts import AccountRefused, AccountsError, NameTaken, NoSuchAccount, new_account
from culture.server.auth.password import PasswordVerifier
from culture.server.errors import StartError
from culture.server.shapes import UnreadableJson
from tests.server.accounts.conftest import Make

ROOT = Path(__file__).parents[3]
CERTIFICATE = "ab" * 32

# Kills itself at the n-th call into the system that a change makes.
KILLED = """
import os, signal, sys
from pathlib import Path
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL
from culture.server.auth.accounts import new_account
from culture.server.auth.account_store import AccountStore

store = AccountStore(Path(sys.argv[1]))
left = int(sys.argv[2])
account = new_account("new", UserClass.AGENT)

def deadly(call):
    def instead(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **kwargs)
    return instead

for module, names in ((os, "open write fchmod replace close fstat"), (REAL, "fsync flock")):
    for name in names.split():
        setattr(module, name, deadly(getattr(module, name)))
# Half of the bytes, so that there is a moment between two writes.
whole = os.write
os.write = lambda file, data: whole(file, data[:max(1, len(data) // 2)])
store.add(account)
"""

WRITER = """
import sys
from pathlib import Path
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.auth.account_store import AccountStore

store = AccountStore(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(20):
    store.add(new_account(f"{sys.argv[2]}{number}", UserClass.AGENT))
    store.add_token("shared", f"{sys.argv[2]}{number}")
"""


def names(store: AccountStore) -> set[str]:
    return {account.name for account in store.all()}


def test_what_is_added_is_there_after_a_restart(store: AccountStore, make: Make) -> None:
    make("ori", "hunter2", nicks=("Ramona",), certificates=(CERTIFICATE,))
    make("robot", kind="agent", always_on=True)
    store.add_token("robot", "laptop")
    store.add(new_account("page", UserClass.BOT, via="web"))
    again = AccountStore(store.path, "spark")
    assert again.all() == store.all() and again.key == store.key
    ori, robot, page = again.all()
    assert (ori.via, robot.via, page.via) == (None, None, "web")
    assert (ori.kind, ori.always_on, robot.kind, robot.always_on) == ("human", True, "agent", True)
    assert again.by_certificate(CERTIFICATE.upper()) == ori
    assert again.get("ORI") == ori and again.get("spark-ori") == ori and again.get("ramona") is None


def test_reading_writes_nothing(path: Path) -> None:
    assert AccountStore(path).all() == () and not path.parent.exists()


def test_a_nick_belongs_to_its_account(store: AccountStore, make: Make) -> None:
    """To the account of that name, or to the one that lists it, with the server's prefix or without."""
    ori = make("ori", nicks=("spark-ramona", "jules"))
    for nick in ("ori", "spark-ori", "SPARK-Ori", "ramona", "spark-Ramona", "spark-jules"):
        assert store.owner_of(nick) == ori
    for nick in ("spark-orin", "thor-ori", "spark-", "spark-spark-ori"):
        assert store.owner_of(nick) is None
    for taken in ("ori", "ORI", "spark-ori", "ramona", "spark-jules"):
        with pytest.raises(NameTaken, match="belongs to the account ori"):
            make(taken)
        with pytest.raises(NameTaken):
            make("ada", nicks=(taken,))
    make("ada", certificates=(CERTIFICATE,))
    with pytest.raises(NameTaken, match="certificate"):
        make("eve", certificates=(CERTIFICATE,))
    store.revoke("ori")
    with pytest.raises(NameTaken):
        make("ramona")


@pytest.mark.parametrize(
    "name", ["", "0", "*", "a b", "a,b", "server", "spark-human", "-a", "x" * 33, "é", "a\n", "#a"]
)
def test_not_everything_is_a_name(name: str) -> None:
    with pytest.raises(AccountRefused):
        new_account(name, UserClass.HUMAN)
    with pytest.raises(AccountRefused):
        new_account("ori", UserClass.HUMAN, nicks=(name,))


def test_who_is_not_there_cannot_be_changed(store: AccountStore) -> None:
    for change in (store.revoke, lambda name: store.add_token(name, "laptop")):
        with pytest.raises(NoSuchAccount, match="no account ori"):
            change("ori")
    with pytest.raises(NoSuchAccount):
        store.set_password("ori", PasswordVerifier.of("x", iterations=1))
    assert not store.path.exists()


def test_who_catches_up_is_still_told_of_it(store: AccountStore, make: Make) -> None:
    """A login looks for itself; whoever was revoked must not be missed for that."""
    elsewhere = AccountStore(store.path, "spark")
    make("ori", "hunter2")
    elsewhere.refresh()
    store.revoke("ori")
    elsewhere.catch_up()
    assert elsewhere.active("ori") is None
    assert elsewhere.refresh().revoked == {"ori"}


def test_a_refresh_tells_what_others_changed(store: AccountStore, make: Make) -> None:
    elsewhere = AccountStore(store.path, "spark")
    make("ori", "hunter2")
    make("ada", "hunter2")
    assert elsewhere.refresh() == Changes(frozenset({"ori", "ada"}), frozenset())
    assert elsewhere.refresh() == Changes(frozenset(), frozenset())
    elsewhere.revoke("ori")
    elsewhere.set_password("ada", PasswordVerifier.of("hunter3", iterations=1))
    for observer in (store, elsewhere):
        changes = observer.refresh()
        assert changes.revoked == {"ori"} and "ada" in changes.changed
        assert observer.refresh() == Changes(frozenset(), frozenset())
    assert store.active("ori") is None and store.get("ori")
    store.set_password("ori", PasswordVerifier.of("hunter3", iterations=1))
    assert elsewhere.refresh() == Changes(frozenset({"ori"}), frozenset())


def test_people_are_known_by_their_accounts(store: AccountStore, make: Make) -> None:
    make("robot", kind="agent")
    assert not store.knows_people
    make("ori")
    assert store.knows_people
    store.revoke("ori")
    assert store.knows_people  # else everybody without an account would be a person again


def test_others_cannot_read_it(store: AccountStore, make: Make) -> None:
    before = os.umask(0)
    try:
        make("ori", "hunter2")
        store.path.chmod(0o644)
        AccountStore(store.path)
        assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
        store.path.chmod(0o666)
        store.revoke("ori")
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in store.path.parent.iterdir()} == {0o600}
    assert "hunter2" not in store.path.read_text()


def test_kill_9_between_any_two_steps_leaves_one_or_the_other(store: AccountStore, make: Make) -> None:
    """The account is there whole or not at all, the others always, and the next change works."""
    make("old", "hunter2")
    before = store.path.read_bytes()
    seen = []
    for step in range(1, 60):
        store.path.write_bytes(before)
        command = [sys.executable, "-c", KILLED, str(store.path), str(step)]
        code = subprocess.run(command, cwd=ROOT, timeout=30).returncode
        found = AccountStore(store.path)
        assert names(found) in ({"old"}, {"old", "new"}) and found.get("old") == store.get("old")
        seen.append("new" in names(found))
        found.add(new_account("later", UserClass.AGENT))
        assert "later" in names(AccountStore(store.path))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("never came to its end")
    assert seen[0] is False and seen[-1] is True and len(seen) > 10
    assert seen == sorted(seen), "once written it stays"


def test_two_writers_lose_nothing_of_each_other(store: AccountStore, make: Make) -> None:
    make("shared")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(store.path), name], cwd=ROOT, stdin=subprocess.PIPE)
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.close()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    store.refresh()
    made = {f"{name}{number}" for name in ("a", "b") for number in range(20)}
    assert names(store) == {"shared"} | made
    shared = store.get("shared")
    assert shared and {token.label for token in shared.tokens} == made


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 1, "accounts": []}',
        b'{"schema": 1, "key": "00", "accounts": {}}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "ori"}]}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "ori", "class": "king"}]}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "ori", "class": "human", "extra": 1}]}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "o", "class": "bot"}, {"name": "O", "class": "bot"}]}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "o", "class": "bot", "scram_sha_256": {}}]}',
        b'{"schema": 1, "key": "00", "accounts": [{"name": "o", "class": "human", "via": "web"}]}',
        b'{"schema": 99, "key": "00", "accounts": []}',
        b'{"schema": "one"}',
    ],
)
def test_a_broken_file_is_told_and_left_alone(path: Path, text: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(text)
    with pytest.raises(StartError, match=r"accounts\.json cannot be read"):
        AccountStore(path)
    assert path.read_bytes() == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
KEYS = ["name", "class", "always_on", "created", "revoked", "nicks", "certificates", "tokens", "scram_sha_256"]


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_odd_contents_are_only_ever_unreadable(item: dict[str, object]) -> None:
    text = json.dumps({"schema": 1, "key": "00", "accounts": [{"name": "ori", "class": "human", **item}]}).encode()
    try:
        contents = account_file.parse(text)
    except UnreadableJson:
        return
    assert account_file.parse(account_file.dump(contents)) == contents


def test_a_file_that_breaks_or_goes_later_changes_nothing_here(store: AccountStore, make: Make) -> None:
    make("ori", "hunter2")
    good = store.path.read_bytes()
    store.path.write_bytes(good[:-10])
    for attempt in (store.refresh, lambda: make("ada")):
        with pytest.raises(AccountsError):
            attempt()
    assert store.path.read_bytes() == good[:-10]
    store.path.unlink()
    for attempt in (store.refresh, lambda: make("ada")):
        with pytest.raises(AccountsError, match="is gone"):
            attempt()
    assert names(store) == {"ori"}
    store.path.write_bytes(good)
    store.refresh()
    make("ada")
    assert names(store) == {"ori", "ada"}


def test_a_link_in_its_place_is_refused(store: AccountStore, make: Make, tmp_path: Path) -> None:
    make("ori")
    store.path.rename(tmp_path / "elsewhere")
    store.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AccountsError):
        AccountStore(store.path)


def test_schema_0_is_brought_forward(path: Path) -> None:
    """Accounts alone, as one would write them by hand; what is left out has its default."""
    path.parent.mkdir()
    path.write_text(json.dumps({"accounts": [{"name": "ori", "class": "human"}, {"name": "r", "class": "bot"}]}))
    store = AccountStore(path)
    assert [(account.name, account.always_on) for account in store.all()] == [("ori", True), ("r", False)]
    store.revoke("r")
    document = json.loads(path.read_text())
    assert document["schema"] == 1 and len(document["key"]) == 64
    assert AccountStore(path).key == store.key


def test_later_schemas_are_reached_step_by_step(
    store: AccountStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema 1 is read by a version that is two schemas ahead, through both; the way back is refused."""
    make("ori", "hunter2")
    before = store.all()
    steps: list[int] = []

    def step(number: int) -> object:
        return lambda document: (steps.append(number), document)[1]

    with monkeypatch.context() as ahead:
        ahead.setattr(account_file, "MIGRATIONS", (*account_file.MIGRATIONS, step(1), step(2)))
        newer = AccountStore(store.path)
        assert newer.all() == before and steps == [1, 2]
        newer.add(new_account("ada", UserClass.HUMAN))
        assert json.loads(store.path.read_text())["schema"] == 3
    with pytest.raises(AccountsError, match="schema 3, written by a newer culture"):
        store.refresh()
    assert store.all() == before


def test_who_is_let_in_again_at_once_was_revoked_all_the_same(store: AccountStore, make: Make) -> None:
    """Live sessions are ended by a revocation, also by one that did not last until the next look."""
    make("ori")
    elsewhere = AccountStore(store.path, "spark")
    elsewhere.refresh()
    store.revoke("ori")
    store.set_password("ori", PasswordVerifier.of("another", iterations=1))
    assert elsewhere.refresh().revoked == {"ori"}
    assert elsewhere.active("ori") is not None


def test_account_whose_name_was_reserved_later_keeps_the_file_readable(tmp_path: Path) -> None:
    """Its nick is refused to everybody, and no new account has such a name."""
    store = AccountStore(tmp_path / "accounts.json", "spark")
    store.add(new_account("helper", UserClass.AGENT))
    text = (tmp_path / "accounts.json").read_text()
    (tmp_path / "accounts.json").write_text(text.replace('"helper"', '"supervisor"'))
    assert [account.name for account in AccountStore(tmp_path / "accounts.json", "spark").all()] == ["supervisor"]
    with pytest.raises(AccountRefused, match="reserved"):
        new_account("irc", UserClass.AGENT)

"""``culture account``: real processes, and for the questions a real terminal."""

import os
import pty
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from culture.cli.account import Program, change_class
from culture.cli.app import app
from culture.cli.web import account
from culture.config.model import ServerConfig
from culture.protocol.vocabulary import Exit, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import AccountRefused, Revoked, Subject, new_account
from culture.server.auth.credential_check import CredentialCheck, Done, check_password
from tests.support import forks
from tests.support.forks import PYTHONPATH

CERTIFICATE = ":".join(["AB"] * 32)


@dataclass(frozen=True)
class Accounts:
    """The command line with a home folder of its own, and what it wrote there."""

    home: Path

    def run(self, *words: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        return forks.run(("account", *words), {"PYTHONPATH": PYTHONPATH, **self.environment}, self.home, typed)

    def command(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "culture", "account", *words]

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.defpath, "HOME": str(self.home), "CULTURE_HOME": str(self.home)}

    @property
    def store(self) -> AccountStore:
        return AccountStore(self.home / "accounts.json", "spark")

    def lets_in(self, name: str, password: str) -> bool:
        check = check_password(self.store, name, password)
        return isinstance(check, CredentialCheck) and isinstance(check.run(), Done)


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "culture.yaml").write_text("name: spark\n")
    return Accounts(home)


def test_an_account_is_made_and_logs_in(accounts: Accounts) -> None:
    made = accounts.run("add", "ori", "--nick", "ramona", "--password-stdin", typed="hunter 2 \n")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == "ori may log in: human, always on, also ramona, password.\n"
    assert accounts.lets_in("ori", "hunter 2 ") and not accounts.lets_in("ori", "hunter 2")
    file = accounts.home / "accounts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and "hunter" not in file.read_text()
    assert accounts.store.owner_of("spark-ramona") == accounts.store.get("ori")


def test_each_option_is_kept(accounts: Accounts) -> None:
    added = accounts.run("add", "robot", "--class", "agent", "--certificate", CERTIFICATE, "--always-on")
    assert added.stdout == "robot may log in: agent, always on, certificate abababababababab….\n"
    accounts.run("add", "ada", "--no-always-on", "--password-stdin", typed="x")
    added = accounts.run("add", "bot", "--class", "bot", "--no-password")
    assert "bot may log in: bot.\nIt has no password, token or certificate yet" in added.stdout
    robot, ada, bot = accounts.store.all()
    assert (robot.kind, robot.always_on, robot.certificates) == ("agent", True, ("ab" * 32,))
    assert (ada.kind, ada.always_on, bot.kind, bot.always_on) == ("human", False, "bot", False)
    listed = accounts.run("list").stdout
    assert [line.split("  ")[0].strip() for line in listed.splitlines()] == ["ada", "bot", "robot"]


def test_a_program_that_acts_for_people_is_named_as_such(accounts: Accounts) -> None:
    made = accounts.run("add", "web", "--class", "bot", "--via", "web", "--no-password")
    assert made.stdout.startswith("web may log in: bot, acts for people via web.\n")
    assert accounts.run("list").stdout == "web  bot, acts for people via web\n"
    assert accounts.store.active("web").via == "web"  # type: ignore[union-attr]
    person = accounts.run("add", "ori", "--via", "web")
    assert (person.returncode, "only an account of class bot" in person.stderr) == (Exit.FAILED, True)


def test_the_page_gets_an_account_and_keeps_its_token(accounts: Accounts) -> None:
    settings = ServerConfig(
        name="spark", data_dir=accounts.home / "data", accounts_file=accounts.home / "accounts.json"
    )
    token = account.ensure_token(settings)
    file = accounts.home / "data" / "web" / "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert account.ensure_token(settings) == token and accounts.lets_in("web", token)
    file.write_text("another\n")
    again = account.ensure_token(settings)
    assert again != token and accounts.lets_in("web", again) and not accounts.lets_in("web", token)
    accounts.run("revoke", "web")
    with pytest.raises(AccountRefused, match="culture account passwd web"):
        account.ensure_token(settings)


def test_the_page_takes_nobodys_account(accounts: Accounts) -> None:
    accounts.run("add", "web", "--password-stdin", typed="x\n")
    settings = ServerConfig(name="spark", accounts_file=accounts.home / "accounts.json")
    with pytest.raises(AccountRefused, match="the human account web"):
        account.ensure_token(settings)


def test_a_password_is_changed_and_taken_away(accounts: Accounts) -> None:
    accounts.run("add", "ori", "--password-stdin", typed="first\n")
    assert accounts.run("passwd", "ori", "--password-stdin", typed="second\r\n").stdout == "ori has a new password.\n"
    assert accounts.lets_in("ori", "second") and not accounts.lets_in("ori", "first")
    revoked = accounts.run("revoke", "ORI")
    assert revoked.returncode == 0 and revoked.stdout.startswith("ori is revoked.")
    assert not accounts.lets_in("ori", "second") and "revoked 20" in accounts.run("list").stdout
    again = accounts.run("add", "ori", "--password-stdin", typed="third\n")
    assert again.returncode == Exit.FAILED and "`culture account passwd ori` activates it again" in again.stderr
    assert "may log in again" in accounts.run("passwd", "ori", "--password-stdin", typed="third\n").stdout
    assert accounts.lets_in("ori", "third")


def test_a_certificate_may_be_added_later(accounts: Accounts) -> None:
    accounts.run("add", "ori", "--password-stdin", typed="first\n")
    accounts.run("add", "ada", "--password-stdin", typed="first\n")
    colons = ":".join(["AB"] * 32)
    added = accounts.run("certificate", "ori", colons)
    assert added.returncode == 0 and "certificate abababab" in added.stdout
    taken = accounts.run("certificate", "ada", "ab" * 32)
    assert taken.returncode == Exit.FAILED and "ori" in taken.stderr
    assert accounts.run("certificate", "ori", "nonsense").returncode == Exit.FAILED
    assert accounts.lets_in("ori", "first")


def test_a_token_is_shown_once(accounts: Accounts) -> None:
    accounts.run("add", "robot", "--class", "agent", "--no-password")
    made = accounts.run("token", "robot", "--label", "laptop")
    token = made.stdout.strip()
    assert re.fullmatch(r"[\w-]{43}", token) and token not in made.stderr
    assert accounts.lets_in("robot", token)
    kept = (accounts.home / "accounts.json").read_text()
    assert token not in kept and token not in accounts.run("list").stdout
    accounts.run("revoke", "robot")
    assert accounts.run("token", "robot").returncode == Exit.FAILED


@pytest.mark.parametrize(
    ("words", "typed", "code", "said"),
    [
        (("add", "ori", "--password-stdin"), "x\n", 1, "ori belongs to the account ori already"),
        (("add", "spark-ori", "--password-stdin"), "x\n", 1, "spark-ori belongs to the account ori already"),
        (("add", "ada", "--nick", "ori", "--password-stdin"), "x\n", 1, "ori belongs to the account ori"),
        (("add", "ada", "--password-stdin"), "\n", 1, "a password cannot be empty"),
        (("add", "ada", "--password-stdin"), "", 1, "a password cannot be empty"),
        (("add", "ada", "--password-stdin"), "\x07\n", 1, "control characters"),
        (("add", "ada"), None, 2, "give it with --password-stdin"),
        (("add", "a b", "--password-stdin"), "x\n", 1, "'a b' cannot be a name"),
        (("add", "server", "--password-stdin"), "x\n", 1, "server is reserved"),
        (("add", "ada", "--certificate", "zz"), None, 1, "64 hexadecimal digits"),
        (("add", "ada", "--class", "king"), None, 2, "king"),
        (("add",), None, 2, "NAME"),
        (("passwd", "orin", "--password-stdin"), "x\n", 1, "there is no account orin; did you mean ori?"),
        (("revoke", "nobody"), None, 1, "there is no account nobody"),
        (("token", "ori", "--label", "a b"), None, 1, "cannot name a token"),
        (("list", "--config", "nowhere.yaml"), None, 78, "there is no such file"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(
    accounts: Accounts, words: tuple[str, ...], typed: str | None, code: int, said: str
) -> None:
    accounts.run("add", "ori", "--no-password")
    before = (accounts.home / "accounts.json").read_bytes()
    result = accounts.run(*words, typed=typed)
    assert result.returncode == code and said in result.stderr, result.stderr
    assert "Traceback" not in result.stderr and result.stdout == ""
    assert (accounts.home / "accounts.json").read_bytes() == before


def test_a_broken_file_is_told(accounts: Accounts) -> None:
    (accounts.home / "accounts.json").write_text("{")
    result = accounts.run("list")
    assert result.returncode == 1 and "accounts.json cannot be read" in result.stderr
    assert "Traceback" not in result.stderr


def test_without_accounts_the_list_says_what_to_do(accounts: Accounts) -> None:
    assert "culture account add NAME" in accounts.run("list").stdout
    assert not (accounts.home / "accounts.json").exists()


def test_the_file_is_where_the_configuration_says(accounts: Accounts) -> None:
    (accounts.home / "culture.yaml").write_text(f"name: spark\naccounts_file: {accounts.home}/deep/who.json\n")
    accounts.run("add", "robot", "--no-password")
    assert (accounts.home / "deep" / "who.json").exists() and not (accounts.home / "accounts.json").exists()


def at_a_terminal(accounts: Accounts, words: tuple[str, ...], answers: list[tuple[str, str]]) -> tuple[int, str]:
    """Answer each question once it is asked; the exit code, and all that the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, accounts.command(words), accounts.environment)
    shown = ""
    for question, answer in answers:
        while question not in shown:
            shown += os.read(terminal, 1024).decode()
        before, _, shown = shown.partition(question)
        shown = before + question.upper() + shown
        os.write(terminal, f"{answer}\n".encode())
    while True:
        try:
            data = os.read(terminal, 1024)
        except OSError:  # what Linux says when the other end is gone
            break
        if not data:
            break
        shown += data.decode()
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


@pytest.mark.fault("C10")
def test_a_person_is_asked_twice_and_nothing_shows(accounts: Accounts) -> None:
    """C10: neither on the screen nor in the process's arguments."""
    first, second = "Password for ori: ", "Once more: "
    code, shown = at_a_terminal(
        accounts, ("add", "ori"), [(first, "hunter2"), (second, "hunter3"), (first, "hunter2"), (second, "hunter2")]
    )
    assert code == 0 and "The passwords differ" in shown and "ori may log in" in shown
    assert "hunter" not in shown and accounts.lets_in("ori", "hunter2")
    code, shown = at_a_terminal(accounts, ("passwd", "ori"), [(first, "")])
    assert code == 1 and "cannot be empty" in shown and accounts.lets_in("ori", "hunter2")


def parameters(command: object, words: str = "culture") -> Iterator[tuple[str, str, bool]]:
    for name, nested in getattr(command, "commands", {}).items():
        yield from parameters(nested, f"{words} {name}")
    for parameter in getattr(command, "params", []):
        # Where a secret is to be found is none itself.
        is_place = parameter.metavar == "FILE"
        is_number = parameter.metavar == "N"
        yield words, parameter.name, is_place or is_number or getattr(parameter, "is_flag", False)


@pytest.mark.fault("C10")
def test_no_command_takes_a_secret_as_an_argument() -> None:
    """C10: what is in argv, everybody on the machine can read."""
    secret = re.compile("pass|secret|token|key")
    taken = [
        f"{words} {name}"
        for words, name, is_harmless in parameters(typer.main.get_command(app))
        if secret.search(name) and not is_harmless
    ]
    assert taken == []


def test_who_logs_in_with_tokens_is_told(accounts: Accounts) -> None:
    subject = Subject("https://issuer.example.org", "private-7")
    accounts.store.vouched(subject, "ori", UserClass.UNKNOWN)
    shown = accounts.run("list").stdout
    assert shown == "ori  unknown, tokens of https://issuer.example.org\n"
    assert accounts.run("revoke", "ori").returncode == 0
    with pytest.raises(Revoked):
        accounts.store.vouched(subject, "ori", UserClass.UNKNOWN)


def test_the_account_of_a_program_gets_another_class_and_a_persons_does_not(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For bots of before that publish in the ledger, which takes class agent."""
    monkeypatch.setenv("CULTURE_HOME", str(accounts.home))
    for name, kind, via in (
        ("helper", UserClass.BOT, None),
        ("web", UserClass.BOT, "web"),
        ("ori", UserClass.HUMAN, None),
    ):
        accounts.store.add(new_account(name, kind, via=via))
    change_class("helper", Program.AGENT, None)
    assert "helper is of class agent" in capsys.readouterr().out
    for name in ("web", "ori"):
        with pytest.raises(typer.Exit):
            change_class(name, Program.AGENT, None)
    assert [(each.name, each.kind) for each in accounts.store.all()] == [
        ("helper", UserClass.AGENT),
        ("web", UserClass.BOT),
        ("ori", UserClass.HUMAN),
    ]

"""``culture account``: accounts of people, agents and bots on the server."""

from enum import StrEnum
from typing import Annotated, NoReturn

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.options import AsJson, Choices, ConfigFile
from culture.cli.output import as_json as in_json
from culture.cli.secret_input import NoTerminal, ask_password
from culture.protocol.names import fold, nearest
from culture.protocol.vocabulary import Exit, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, NoSuchAccount, account_name, new_account, via_word
from culture.server.auth.password import PasswordVerifier, UnfitPassword, prepare

group = typer.Typer(help="Manage accounts.", no_args_is_help=True)


class AccountClass(StrEnum):
    """Class of a new account: human, agent or bot; a person chooses it, since others rely on it."""

    HUMAN = UserClass.HUMAN
    AGENT = UserClass.AGENT
    BOT = UserClass.BOT


Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name of the account, for example ori.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input instead of asking.")
]


@group.command()
def add(
    name: Name,
    kind: Annotated[AccountClass, typer.Option("--class", help="Class of the account's owner.")] = AccountClass.HUMAN,
    nick: Annotated[
        list[str] | None, typer.Option("--nick", metavar="NICK", help="Another nick of the account; may be repeated.")
    ] = None,
    certificate: Annotated[
        list[str] | None,
        typer.Option(
            "--certificate", metavar="FINGERPRINT", help="SHA-256 of a certificate for login; may be repeated."
        ),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            "--via",
            metavar="WORD",
            help="For a bot that logs in for people: WHOIS shows them as connected via WORD.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="User of this machine whose programs use this account without a login."
        ),
    ] = None,
    always_on: Annotated[
        bool | None,
        typer.Option(
            "--always-on/--no-always-on", help="Stay online when the last client leaves.  [default: on for people]"
        ),
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Allow login by token or certificate only.")
    ] = False,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
) -> None:
    """Add an account.

    The password is asked for, or read from standard input. It is never an argument, since other users can see
    arguments.
    """
    store = _store(config)
    try:
        account_name(name)
        if via is not None:
            via_word(via, UserClass(kind))
        owner = store.owner_of(name)
        if owner:
            _fail(_name_taken(name, owner))
        needs_password = password_stdin or not (no_password or certificate or user)
        store.add(
            new_account(
                name,
                UserClass(kind),
                verifier=_new_verifier(name, password_stdin) if needs_password else None,
                certificates=tuple(certificate or ()),
                nicks=tuple(nick or ()),
                always_on=always_on,
                via=via,
                user=user,
            )
        )
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{name} may log in: {_describe(store, name)}.")
    if not needs_password and not certificate and not user:
        typer.echo(f"It has no password, token or certificate yet: `culture account token {name}` makes a token.")


@group.command()
def passwd(name: Name, password_stdin: PasswordStdin = False, config: ConfigFile = None) -> None:
    """Set a new password for an account.

    This also activates a revoked account again.
    """
    store = _store(config)
    account = _find(store, name)
    store.set_password(account.name, _new_verifier(account.name, password_stdin))
    typer.echo(f"{account.name} has a new password{'' if account.is_active else ', and may log in again'}.")


@group.command()
def token(
    name: Name,
    label: Annotated[
        str,
        typer.Option("--label", metavar="LABEL", help="Label of the token; it replaces the token with the same label."),
    ] = "default",
    config: ConfigFile = None,
) -> None:
    """Make a token: a random secret that replaces the password.

    It is printed only once. Programs log in with it by SASL PLAIN or PASS.
    """
    store = _store(config)
    account = _find(store, name)
    try:
        secret = store.add_token(account.name, label)
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(secret)
    typer.echo(f"Save it now: it is not shown again. It works in place of the password of {account.name}.", err=True)


@group.command()
def certificate(
    name: Name,
    fingerprint: Annotated[
        str, typer.Argument(metavar="FINGERPRINT", show_default=False, help="SHA-256 of the certificate.")
    ],
    config: ConfigFile = None,
) -> None:
    """Allow an account to log in with a TLS certificate (SASL EXTERNAL)."""
    store = _store(config)
    account = _find(store, name)
    try:
        store.add_certificate(account.name, fingerprint)
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{account.name} may log in with it: {_describe(store, account.name)}.")


class Program(StrEnum):
    """Class of an account that a program uses: agent or bot."""

    AGENT = UserClass.AGENT
    BOT = UserClass.BOT


@group.command("class")
def change_class(
    name: Name,
    kind: Annotated[Program, typer.Argument(show_default=False, help="What the program is.")],
    config: ConfigFile = None,
) -> None:
    """Change the class of a program's account to agent or bot.

    Agents can wake agents, vote on questions and publish in the ledger; bots cannot. The change takes effect at the
    program's next login.
    """
    store = _store(config)
    account = _find(store, name)
    try:
        store.set_class(account.name, UserClass(kind))
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{account.name} is of class {kind} from its next login on.")


@group.command("list")
@open_to_agents
def show(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List all accounts."""
    store = _store(config)
    accounts = sorted(store.all(), key=lambda account: fold(account.name))
    if as_json:
        typer.echo(in_json([_entry(account) for account in accounts]))
        return
    if not accounts:
        typer.echo("There are no accounts. Make one with `culture account add NAME`.")
    width = max((len(account.name) for account in accounts), default=0)
    for account in accounts:
        typer.echo(f"{account.name:<{width}}  {_describe(store, account.name)}")


@group.command()
def revoke(name: Name, config: ConfigFile = None) -> None:
    """Revoke an account: its password, tokens and certificates stop working.

    A running server ends the account's sessions within 5 seconds. Its nicks stay reserved.
    """
    store = _store(config)
    account = _find(store, name)
    store.revoke(account.name)
    typer.echo(f"{account.name} is revoked. `culture account passwd {account.name}` activates it again.")


def _entry(account: Account) -> dict[str, object]:
    """Return an account as a dict for --json, without anything that can be used to log in."""
    return {
        "name": account.name,
        "class": account.kind.value,
        "always_on": account.always_on,
        "created": account.created,
        "revoked": account.revoked,
        "password": account.verifier is not None,
        "tokens": len(account.tokens),
        "certificates": list(account.certificates),
        "nicks": list(account.nicks),
        "via": account.via,
        "user": account.user,
    }


def _store(config: ConfigFile) -> AccountStore:
    settings = Choices(config).load().config
    return AccountStore(settings.accounts_file, settings.account_prefix)


def _find(store: AccountStore, name: str) -> Account:
    account = store.get(name)
    if account is None:
        close = nearest(name, [account.name for account in store.all()])
        _fail(f"{NoSuchAccount(name)}; {f'did you mean {close}?' if close else '`culture account list` shows them'}")
    return account


def _new_verifier(name: str, from_stdin: bool) -> PasswordVerifier:
    try:
        password = ask_password(name, from_stdin)
        prepare(password)
    except NoTerminal as problem:
        _fail(str(problem), Exit.USAGE)
    except UnfitPassword as unfit:
        _fail(str(unfit))
    return PasswordVerifier.of(password)


def _name_taken(name: str, owner: Account) -> str:
    if owner.is_active:
        return f"{name} belongs to the account {owner.name} already"
    return f"{owner.name} was revoked; `culture account passwd {owner.name}` activates it again"


def _describe(store: AccountStore, name: str) -> str:
    account = store.get(name)
    assert account is not None
    ways = [
        "password" if account.verifier else "",
        *(f"token {each.label}" for each in account.tokens),
        *(f"certificate {text[:16]}…" for text in account.certificates),
        f"tokens of {account.subject.issuer}" if account.subject else "",
        f"programs of {account.user} on this machine" if account.user else "",
    ]
    facts = [
        account.kind.value,
        f"acts for people via {account.via}" if account.via else "",
        "always on" if account.always_on else "",
        f"revoked {account.revoked}" if account.revoked else "",
        f"also {', '.join(account.nicks)}" if account.nicks else "",
        *ways,
    ]
    return ", ".join(filter(None, facts))


def _fail(text: str, code: Exit = Exit.FAILED) -> NoReturn:
    typer.echo(f"culture: {text}", err=True)
    raise typer.Exit(code)

"""``culture account``: who may log in to the server."""

from enum import StrEnum
from typing import Annotated, NoReturn

import typer

from culture.cli.agent_access import open_to_agents
from culture.cli.options import AsJson, Choices, ConfigFile
from culture.cli.output import as_json as in_json
from culture.cli.secret_input import NoTerminal, ask_password
from culture.protocol.names import nearest
from culture.protocol.vocabulary import Exit, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, AccountRefused, NoSuchAccount, account_name, new_account, via_word
from culture.server.auth.password import PasswordVerifier, UnfitPassword, prepare

group = typer.Typer(help="Say who may log in to the server.", no_args_is_help=True)


class AccountClass(StrEnum):
    """The classes an account may have; which of them is a person decides what others may rely on."""

    HUMAN = UserClass.HUMAN
    AGENT = UserClass.AGENT
    BOT = UserClass.BOT


Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="The account, for example ori.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, do not ask for it.")
]


@group.command()
def add(
    name: Name,
    kind: Annotated[AccountClass, typer.Option("--class", help="What the account's owner is.")] = AccountClass.HUMAN,
    nick: Annotated[
        list[str] | None, typer.Option("--nick", metavar="NICK", help="A further nick of theirs; may be repeated.")
    ] = None,
    certificate: Annotated[
        list[str] | None,
        typer.Option("--certificate", metavar="FINGERPRINT", help="SHA-256 of a certificate to log in with; likewise."),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            "--via",
            metavar="WORD",
            help="A program (of class bot) that logs in for people; WHOIS then says that they are here via WORD.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", metavar="USER", help="A user of this machine, whose own programs need no login for this account."
        ),
    ] = None,
    always_on: Annotated[
        bool | None,
        typer.Option("--always-on/--no-always-on", help="Stay when the last client leaves.  [default: people do]"),
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="Log in by token or certificate only; so with --certificate.")
    ] = False,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
) -> None:
    """Make an account.

    The password is asked for, or read from standard input; it is never an argument, as others can see those.
    """
    store = _store(config)
    try:
        account_name(name)
        if via is not None:
            via_word(via, UserClass(kind))
        owner = store.owner_of(name)
        if owner:
            _fail(_taken(name, owner))
        asked = password_stdin or not (no_password or certificate or user)
        store.add(
            new_account(
                name,
                UserClass(kind),
                verifier=_new_verifier(name, password_stdin) if asked else None,
                certificates=tuple(certificate or ()),
                nicks=tuple(nick or ()),
                always_on=always_on,
                via=via,
                user=user,
            )
        )
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{name} may log in: {_described(store, name)}.")
    if not asked and not certificate and not user:
        typer.echo(f"It has no way to do so yet; make one with `culture account token {name}`.")


@group.command()
def passwd(name: Name, password_stdin: PasswordStdin = False, config: ConfigFile = None) -> None:
    """Give an account another password.

    A revoked account may log in again with it.
    """
    store = _store(config)
    account = _known(store, name)
    store.set_password(account.name, _new_verifier(account.name, password_stdin))
    typer.echo(f"{account.name} has a new password{'' if account.is_active else ', and may log in again'}.")


@group.command()
def token(
    name: Name,
    label: Annotated[
        str, typer.Option("--label", metavar="LABEL", help="Which token; the one of the same label is replaced.")
    ] = "default",
    config: ConfigFile = None,
) -> None:
    """Make a token: a random secret that is used in place of the password.

    It is printed this once. Programs log in with it by SASL PLAIN or PASS.
    """
    store = _store(config)
    account = _known(store, name)
    try:
        made = store.add_token(account.name, label)
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(made)
    typer.echo(f"Keep it: it is not shown again. It replaces the password of {account.name}.", err=True)


@group.command()
def certificate(
    name: Name,
    fingerprint: Annotated[
        str, typer.Argument(metavar="FINGERPRINT", show_default=False, help="SHA-256 of the certificate.")
    ],
    config: ConfigFile = None,
) -> None:
    """Let an account log in with a certificate too (SASL EXTERNAL)."""
    store = _store(config)
    account = _known(store, name)
    try:
        store.add_certificate(account.name, fingerprint)
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{account.name} may log in with it: {_described(store, account.name)}.")


class Program(StrEnum):
    """The classes of programs."""

    AGENT = UserClass.AGENT
    BOT = UserClass.BOT


@group.command("class")
def change_class(
    name: Name,
    kind: Annotated[Program, typer.Argument(show_default=False, help="What the program is.")],
    config: ConfigFile = None,
) -> None:
    """Make a program's account one of class agent, or bot.

    Agents wake agents, vote on questions and publish in the ledger; bots do not.
    It counts from the program's next login on.
    """
    store = _store(config)
    account = _known(store, name)
    try:
        store.set_class(account.name, UserClass(kind))
    except AccountRefused as refused:
        _fail(str(refused))
    typer.echo(f"{account.name} is of class {kind} from its next login on.")


@group.command("list")
@open_to_agents
def show(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show all accounts."""
    store = _store(config)
    accounts = sorted(store.all(), key=lambda account: account.name.lower())
    if as_json:
        typer.echo(in_json([_entry(account) for account in accounts]))
        return
    if not accounts:
        typer.echo("There are no accounts. Make one with `culture account add NAME`.")
    width = max((len(account.name) for account in accounts), default=0)
    for account in accounts:
        typer.echo(f"{account.name:<{width}}  {_described(store, account.name)}")


@group.command()
def revoke(name: Name, config: ConfigFile = None) -> None:
    """Take away every way to log in: password, tokens and certificates.

    A running server ends the account's sessions within 5 seconds. Its nicks stay its own.
    """
    store = _store(config)
    account = _known(store, name)
    store.revoke(account.name)
    typer.echo(f"{account.name} is revoked. `culture account passwd {account.name}` would let it in again.")


def _entry(account: Account) -> dict[str, object]:
    """What may be known of an account; nothing with which one could log in."""
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


def _known(store: AccountStore, name: str) -> Account:
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


def _taken(name: str, owner: Account) -> str:
    if owner.is_active:
        return f"{name} belongs to the account {owner.name} already"
    return f"{owner.name} was revoked; `culture account passwd {owner.name}` would let it in again"


def _described(store: AccountStore, name: str) -> str:
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

"""ENROL: a machine that was invited becomes a link, once for each key."""

import logging
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from culture.config.links import LinkConfig
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import Book, Entries, UnreadableBook
from culture.protocol.message import Message
from culture.protocol.names import fold, short_name
from culture.server.auth.invitations import Invitation, Invitations, NotInvited, UnreadableInvitations, path_of
from culture.server.auth.login_attempts import TOO_MANY
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.errors import Failed
from culture.server.handlers.authenticate import is_private
from culture.server.skill import Host

if TYPE_CHECKING:
    from culture.federation.mesh import Mesh

log = logging.getLogger(__name__)

SHORTEST_SECRET = 32


class Enrolment:
    """Writes the links of those who have a key; what they show from then on is a secret of that link alone."""

    def __init__(self, mesh: "Mesh", host: Host) -> None:
        self._mesh = mesh
        self._host = host

    @command("ENROL", params=3, early=True)
    def enrol(self, ctx: Context, message: Message) -> Later:
        """``ENROL name key secret``: I was invited, and from now on this is the secret of our link."""
        name, key, secret = message.params[:3]
        session, config = ctx.session, self._host.config
        if not (is_private(ctx) or config.trusted_network):
            raise Failed("ENROL", "NEED_TLS", text="An invitation is taken up over TLS")
        if not ctx.parts.logins.may_try(session, config.limits, ctx.now()):
            raise Failed("ENROL", "TOO_MANY", text=TOO_MANY)
        shown = session.tls.certificate if session.tls is not None else None
        if shown is None and not session.is_local and not config.trusted_network:
            raise Failed("ENROL", "NEED_CERTIFICATE", text="From another machine a link needs a certificate: show it")
        work = partial(self._redeem, name, key, secret, shown)
        return Later(ctx.parts.logins.check(work), lambda outcome: self._answer(ctx, outcome))

    def _redeem(self, name: str, key: str, secret: str, shown: str | None) -> str | Failed:
        """In a thread: the name that is linked from now on."""
        runtime = self._host.runtime
        invitations, now = Invitations(path_of(self._host.config), runtime=runtime), runtime.now()
        try:
            invitations.redeem("machine", key, name, now, partial(self._write, name, secret, shown))
        except NotInvited as why:
            return Failed("ENROL", "INVALID_KEY" if why.is_guess else "NOT_INVITED", text=str(why))
        except (ValidationError, Misfit) as wrong:
            return Failed("ENROL", "UNFIT", text=_reason(wrong))
        except (UnreadableBook, UnreadableInvitations, OSError) as error:
            log.error("nobody can be let in by invitation: %s", error)
            return Failed("ENROL", "TEMPORARILY_UNAVAILABLE", text="It could not be written down")
        return name

    def _write(self, name: str, secret: str, shown: str | None, invitation: Invitation) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise Misfit(f"A link's secret has at least {SHORTEST_SECRET} characters")
        config = self._host.config
        link = LinkConfig.model_validate(
            {"name": name, "secret": secret, "fingerprint": shown, "trust": invitation.trust}
            | {"channels": invitation.channels}
        )

        def added(entries: Entries) -> Entries:
            if link.short_name in book.merged(config.links, entries):
                raise NotInvited(f"A server called {link.short_name} is linked already: take that link away first")
            changed = Entries({**entries.links, link.short_name: link}, entries.unlinked - {link.short_name})
            book.check(config, book.merged(config.links, changed).values())
            return changed

        Book(book.path_of(config), runtime=self._host.runtime).change(added)

    def _answer(self, ctx: Context, outcome: str | Failed) -> None:
        if isinstance(outcome, Failed):
            if "INVALID_KEY" in outcome.params:
                log.warning("a key that opens nothing was tried from %s", ctx.session.host)
                ctx.parts.logins.fail(ctx.session, ctx.now())
            raise outcome
        self._mesh.standing.look()
        log.info("%s was invited: it is let in as a link from now on", short_name(fold(outcome)))
        ctx.send("ENROL", "SUCCESS", self._host.config.name, "You are let in as a link from now on")


def _reason(wrong: ValidationError | Misfit) -> str:
    """Never what was given: it may be the secret."""
    if isinstance(wrong, Misfit):
        return str(wrong)
    return "; ".join(
        f"{'.'.join(map(str, each['loc'])) or 'link'}: {each['msg']}" for each in wrong.errors(include_input=False)
    )

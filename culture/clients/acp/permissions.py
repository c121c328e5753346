"""Answer an agent's permission requests, by policy or by asking people."""

from collections.abc import Mapping, Sequence

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from culture.clients.acp.options import Permissions
from culture.clients.shared.asking import Ask, OpenQuestions
from culture.clients.shared.turn import Permit

ALLOWANCES = ("allow_once", "allow_always")
REJECTIONS = ("reject_once", "reject_always")


class AcpPermissions:
    """Answers permission requests by the policy, or asks people."""

    def __init__(self, policy: Permissions) -> None:
        self._policy = policy
        self._questions = OpenQuestions()

    async def decide(self, tool: str, given: Mapping[str, object], ask: Ask | None) -> Permit | None:
        """Whether the tool is allowed; None if the turn was interrupted meanwhile."""
        if self._policy is Permissions.ALLOW:
            return Permit(True)
        if self._policy is Permissions.DENY or ask is None:
            return Permit(False)
        return await self._questions.put(ask, tool, given)

    def break_off(self) -> None:
        """Withdraw the open questions."""
        self._questions.forget()


def response(permit: Permit | None, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """The offered option that matches the permit, preferring one that holds once."""
    if permit is not None and not permit.interrupt:
        for kind in ALLOWANCES if permit.allowed else REJECTIONS:
            for option in options:
                if option.kind == kind:
                    chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=chosen)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

"""Answer an agent's permission requests, by policy or by asking people."""

from collections.abc import Mapping, Sequence

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from culture.clients.acp.options import Permissions
from culture.clients.shared.asking import Ask, OpenQuestions
from culture.clients.shared.turn import Permit

ALLOWANCES = ("allow_once", "allow_always")
REJECTIONS = ("reject_once", "reject_always")


class AcpPermissions:
    """Answers the agent's permission requests by the policy, or by asking people."""

    def __init__(self, policy: Permissions) -> None:
        self._policy = policy
        self._questions = OpenQuestions()

    async def decide(self, tool: str, given: Mapping[str, object], ask: Ask | None) -> Permit | None:
        """Return whether the tool may be used, decided by the policy or by asking people.

        ``given``: the tool's input; ``ask``: asks people, None if that is not possible: then the tool is refused.
        Returns None if the turn was interrupted.
        """
        if self._policy is Permissions.ALLOW:
            return Permit(True)
        if self._policy is Permissions.DENY or ask is None:
            return Permit(False)
        return await self._questions.put(ask, tool, given)

    def break_off(self) -> None:
        """Withdraw the open permission questions, because the turn is interrupted."""
        self._questions.forget()


def response(permit: Permit | None, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
    """Return the protocol's response to a permission request: the option to choose.

    Of those that fit the permit, one that holds only once is preferred; no permit means cancelled.
    """
    if permit is not None and not permit.interrupt:
        for kind in ALLOWANCES if permit.allowed else REJECTIONS:
            for option in options:
                if option.kind == kind:
                    chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                    return RequestPermissionResponse(outcome=chosen)
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

"""Convert Claude Code's rate limit reports to quotas."""

from collections.abc import Mapping

from claude_agent_sdk import RateLimitInfo

from culture.clients.shared.budget import Quota

REJECTED = "rejected"
# Paid usage beyond the subscription: not a quota that resets.
_OVERAGE = "overage"
_ALL = "unifiedWindows"


def quotas(told: RateLimitInfo) -> list[Quota]:
    """Return the usage quotas in a rate limit report, one per time window.

    A rejected window counts as used up.
    """
    windows = told.raw.get(_ALL)
    found = {
        name: Quota(name, float(each["utilization"]), float(each["resetsAt"]))
        for name, each in (windows.items() if isinstance(windows, dict) else ())
        if _is_figure(each, "utilization") and _is_figure(each, "resetsAt")
    }
    name, used = told.rate_limit_type, 1.0 if told.status == REJECTED else told.utilization
    if name is not None and name != _OVERAGE and used is not None and told.resets_at is not None:
        found[name] = Quota(name, used, float(told.resets_at))
    return list(found.values())


def _is_figure(window: object, key: str) -> bool:
    return isinstance(window, Mapping) and isinstance(window.get(key), int | float)

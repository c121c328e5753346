"""What agents have called people for."""

from starlette.responses import Response

from culture.web.mesh_model import board_of
from culture.web.page import PageRequest
from culture.web.view import WebView, shown

_MOST = 200
_GRAVITIES = ("error", "warning", "info")


async def _alerts(page: PageRequest) -> Response:
    found, wanted = board_of(page).alerts(), page.query.get("gravity", "")
    counts = {gravity: sum(alert.gravity == gravity for alert in found) for gravity in _GRAVITIES}
    return page.show(
        "alerts.html",
        alerts=[alert for alert in found if not wanted or alert.gravity == wanted][:_MOST],
        counts=counts,
        wanted=wanted,
        everything=len(found),
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/alerts", title="Alerts", order=40, icon="alerts", routes=[shown("/alerts", _alerts)])

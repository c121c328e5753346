"""The page *Alerts*: errors and other calls of agents, newest first, filtered by severity."""

from starlette.responses import Response

from culture.web.mesh_model import mesh_model
from culture.web.page import PageRequest
from culture.web.view import WebView, get

_MOST = 200
_GRAVITIES = ("error", "warning", "info")


async def _alerts(page: PageRequest) -> Response:
    alerts, selected = mesh_model(page).alerts(), page.query.get("gravity", "")
    counts = {gravity: sum(alert.gravity == gravity for alert in alerts) for gravity in _GRAVITIES}
    return page.show(
        "alerts.html",
        alerts=[alert for alert in alerts if not selected or alert.gravity == selected][:_MOST],
        counts=counts,
        selected=selected,
        total=len(alerts),
        problem=page.web.ledger.problem,
    )


VIEW = WebView(path="/alerts", title="Alerts", order=40, icon="alerts", routes=[get("/alerts", _alerts)])

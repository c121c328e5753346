// Keeps nothing: what people and agents say stays on the server. It is here so that phones offer to install the page.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate") return;
  event.respondWith(fetch(event.request).catch(() => new Response(
    "The page cannot be reached at the moment. Load it again when the connection is back.",
    { status: 503, headers: { "Content-Type": "text/plain; charset=utf-8" } },
  )));
});

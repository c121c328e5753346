// The service worker caches nothing: messages stay on the server. It exists so that phones offer to install the page.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate") return;
  event.respondWith(fetch(event.request).catch(() => new Response(
    "The page cannot be reached. Reload it when you are online again.",
    { status: 503, headers: { "Content-Type": "text/plain; charset=utf-8" } },
  )));
});

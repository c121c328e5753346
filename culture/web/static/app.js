"use strict";
// Script of all pages: CSRF token for htmx, live updates from /events, message composer, keyboard shortcuts. Needs htmx only.

const account = document.body.dataset.account;
const find = (selector) => document.querySelector(selector);
const csrf = () => find("meta[name=csrf]").content;
const fold = (name) => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
const room = () => find("#room");

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = csrf();
});

function post(path, fields) {
  return fetch(path, {
    method: "POST",
    headers: { "X-CSRF-Token": csrf(), "HX-Request": "true" },
    body: new URLSearchParams(fields),
  });
}

// Refusals and results: show the server's text next to the form, or at the bottom of the page.

function refusalText(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const refusal = page.querySelector(".refusal");
  return (refusal || page.body).textContent.trim().slice(0, 500);
}

function showResult(text, place = find("#result")) {
  if (place) place.textContent = text;
}

// Show a private notice of an agent or bot, such as the answer to `@guide help`, while a room is open.
function showPrivateNotice(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const notice = template.content.querySelector("li.notice.agent, li.notice.bot");
  const place = find("#result");
  if (!notice || !place) return;
  const [box, sender] = [document.createElement("p"), document.createElement("b")];
  box.className = "result";
  sender.textContent = notice.dataset.sender;
  box.append(sender, `, to you: ${notice.querySelector(".text").textContent.trim()}`);
  place.replaceChildren(box);
}

const isRefused = (xhr) => xhr.getResponseHeader("X-Refused") !== null;

document.addEventListener("htmx:afterRequest", (event) => {
  const { xhr, elt } = event.detail;
  if (!isRefused(xhr)) return;
  const own = elt.closest("form")?.querySelector("[role=alert]");
  showResult(refusalText(xhr.responseText), own || undefined);
});
document.addEventListener("htmx:responseError", (event) => {
  const { xhr, elt } = event.detail;
  if (xhr.status === 401) return goToLogin();
  const own = elt.closest("form")?.querySelector("[role=alert]");
  showResult(refusalText(xhr.responseText) || `The page returned error ${xhr.status}.`, own || undefined);
});
document.addEventListener("htmx:sendError", (event) => {
  const own = event.detail.elt.closest("form")?.querySelector("[role=alert]");
  // A background reload that failed needs no message: the connection state is shown already.
  if (!own && event.detail.requestConfig?.verb !== "post") return;
  showResult("The page cannot be reached. Nothing was sent. Try again.", own || undefined);
});
document.addEventListener("htmx:beforeRequest", (event) => {
  const own = event.detail.elt.closest("form")?.querySelector("[role=alert]");
  if (own) showResult("", own);
  else if (event.detail.requestConfig?.verb === "post") showResult("");
});

// Times, converted to the time zone of the browser.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

function showTimes(within = document) {
  const today = new Date().toDateString();
  for (const each of within.querySelectorAll("time[datetime]:not([data-shown])")) {
    const time = new Date(each.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    if (!each.hasAttribute("data-keep")) each.textContent = (time.toDateString() === today ? clock : date).format(time);
    each.title = time.toLocaleString();
    each.dataset.shown = "1";
  }
}
document.addEventListener("htmx:afterSwap", () => { showTimes(); showMentionCount(); });

// Number of unread mentions in the title of the tab.

const title = document.title;
function showMentionCount() {
  const counts = [...document.querySelectorAll("#sidebar .count.mention")].map((each) => Number(each.textContent));
  const sum = counts.reduce((all, each) => all + each, 0);
  document.title = sum ? `(${sum}) ${title}` : title;
}

// Messages of the open room.

const list = () => find("#messages");
const isLive = () => room() && !room().dataset.at;
const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 80;
const toEnd = () => { const box = list(); if (box) box.scrollTop = box.scrollHeight; };

function append(html) {
  const box = list();
  const stays = !isAtEnd(box);
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const item of template.content.querySelectorAll("li")) {
    if (!document.getElementById(item.id)) box.append(item);
  }
  showTimes(box);
  if (!stays) toEnd();
}

let markTimer = 0;
function markRead() {
  if (!isLive() || document.hidden || !document.hasFocus()) return;
  clearTimeout(markTimer);
  markTimer = setTimeout(() => post("/read", { room: room().dataset.room }).catch(() => {}), 400);
}

async function catchUp() {
  for (let turn = 0; isLive() && turn < 20; turn += 1) {
    const last = [...list().querySelectorAll("li[data-id]")].pop();
    const path = location.pathname + (last ? `?after=${encodeURIComponent(last.dataset.id)}` : "");
    const answer = await fetch(path, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer || !answer.ok || answer.headers.has("X-Refused")) return;
    if (!last) return location.reload();
    const before = list().childElementCount;
    append(await answer.text());
    if (list().childElementCount - before < 50) break;
  }
  markRead();
}

// Throttled reloads: an event reloads the parts of the page that listen to it at once, then at most once a second, and
// always once more after the last event. The throttle and delay of htmx do not do: htmx loses events that arrive during
// a request (the waiting one belongs to the element that is replaced) or within its throttle, and with its delay a busy
// room would never be reloaded.

const RELOAD_INTERVAL = 1000;
const throttled = new Map(); // event name -> whether it occurred again since the last reload

const isLoading = (name) => find(`.htmx-request[hx-trigger*="${name} from:body"]`) !== null;

function reload(name) {
  if (throttled.has(name)) return throttled.set(name, true);
  const mustWait = isLoading(name);
  throttled.set(name, mustWait);
  setTimeout(() => endThrottle(name), mustWait ? RELOAD_INTERVAL / 10 : RELOAD_INTERVAL);
  if (!mustWait) document.body.dispatchEvent(new CustomEvent(name));
}

function endThrottle(name) {
  const again = throttled.get(name);
  throttled.delete(name);
  if (again) reload(name);
}

// An open menu is not replaced; it is reloaded when it closes.

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "nav" && find("#nav details[open]")) event.detail.shouldSwap = false;
});
document.addEventListener("toggle", (event) => {
  if (event.target.matches("#nav details") && !event.target.open) reload("facts:alert");
}, true);

// Live updates from /events.

let source = null;
let lastEventId = document.body.dataset.position || "";
let retryDelay = 1000;
let hiddenAt = 0;
const ASLEEP = 20000; // ms in the background after which a phone may have dropped the stream without an error

function showState(text) {
  const place = find("#link-state");
  if (!place) return;
  place.hidden = !text;
  place.textContent = text;
  document.body.classList.toggle("is-cut-off", Boolean(text));
}

function goToLogin() {
  location.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
}

const HANDLERS = {
  here() {},
  message(event) {
    if (isLive() && fold(event.room) === fold(room().dataset.room)) {
      append(event.html);
      markRead();
    } else if (isLive() && !event.room.startsWith("#")) {
      showPrivateNotice(event.html);
    }
    reload("rooms");
  },
  rooms() { reload("rooms"); },
  members(event) {
    if (room() && (!event.room || fold(event.room) === fold(room().dataset.room))) reload("members");
  },
  topic(event) {
    if (room() && fold(event.room) === fold(room().dataset.room)) reload("topic");
  },
  facts(event) {
    reload("facts");
    for (const kind of event.kinds) reload(`facts:${kind}`);
  },
  state(event) {
    if (event.condition === "connected") {
      const wasCut = document.body.classList.contains("is-cut-off");
      showState("");
      if (wasCut) HANDLERS.resync();
    } else if (event.condition === "hopeless") {
      showState(`The server refuses your login: ${event.reason}`);
    } else {
      showState("The server cannot be reached. Reconnecting…");
    }
  },
  resync() {
    catchUp();
    for (const name of ["rooms", "members", "topic", "facts"]) reload(name);
    for (const kind of ["state", "question", "spend", "alert", "task", "link"]) reload(`facts:${kind}`);
  },
  ended() { goToLogin(); },
};

function listen() {
  source?.close();
  source = new EventSource(`/events${lastEventId ? `?last=${encodeURIComponent(lastEventId)}` : ""}`);
  source.onopen = () => { retryDelay = 1000; };
  source.onerror = () => {
    showState("Connection lost. Reconnecting…");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(reconnect, retryDelay);
    retryDelay = Math.min(retryDelay * 2, 10000);
  };
  for (const [name, handle] of Object.entries(HANDLERS)) {
    source.addEventListener(name, (event) => {
      if (event.lastEventId) lastEventId = event.lastEventId;
      handle(JSON.parse(event.data));
    });
  }
}

async function reconnect() {
  const answer = await fetch("/whoami", { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer && answer.status === 401) return goToLogin();
  listen();
}

// The composer: Enter sends; the draft survives errors and switching rooms.

function setUpComposer() {
  const form = find("#say");
  if (!form) return;
  const text = form.querySelector("textarea");
  const key = `draft ${account} ${room().dataset.room}`;
  const grow = () => { text.style.height = "auto"; text.style.height = `${Math.min(text.scrollHeight, 240)}px`; };
  text.value = sessionStorage.getItem(key) || text.value;
  grow();
  text.addEventListener("input", () => { sessionStorage.setItem(key, text.value); grow(); });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (text.value.trim()) form.requestSubmit();
    }
  });
  form.addEventListener("htmx:beforeRequest", () => { form.dataset.sent = text.value; });
  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && !isRefused(event.detail.xhr) && text.value === form.dataset.sent) {
      text.value = "";
      sessionStorage.removeItem(key);
      grow();
    }
  });
  if (matchMedia("(hover: hover)").matches) text.focus();
}

// Keyboard shortcuts outside of input fields: / search, c compose, j and k next and previous room.

const isTyping = (element) => element.matches("input, textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    const open = find("details[open]");
    if (open) open.open = false;
    else document.activeElement?.blur();
    return;
  }
  if (isTyping(event.target)) return;
  if (event.key === "/") { event.preventDefault(); find("#search")?.focus(); }
  else if (event.key === "c" && find("#text")) { event.preventDefault(); find("#text").focus(); }
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
});

function step(way) {
  const links = [...document.querySelectorAll("#sidebar a[data-room]")];
  const here = links.findIndex((link) => link.getAttribute("aria-current"));
  const next = links[here + way];
  if (next) location.href = next.href;
}

// Start.

showTimes();
showMentionCount();
if (account) {
  setUpComposer();
  const at = room()?.dataset.at && document.getElementById(`m-${room().dataset.at}`);
  if (at) { at.classList.add("highlighted"); at.scrollIntoView({ block: "center" }); }
  else toEnd();
  markRead();
  addEventListener("focus", markRead);
  document.addEventListener("visibilitychange", () => {
    markRead();
    if (document.hidden) hiddenAt = Date.now();
    else if (Date.now() - hiddenAt > ASLEEP) listen();
  });
  listen();
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
}
if ("serviceWorker" in navigator && isSecureContext) navigator.serviceWorker.register("/sw.js").catch(() => {});

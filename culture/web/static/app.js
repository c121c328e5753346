"use strict";
// What the page does by itself: the token for htmx, news from /events, the composer, keys. No library beside htmx.

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

// Refusals: the server's words, where they are looked for.

function wordsOf(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const found = page.querySelector(".refusal");
  return (found || page.body).textContent.trim().slice(0, 500);
}

function tell(text, place = find("#told")) {
  if (place) place.textContent = text;
}

// What a daemon tells one person alone (`@guide help`) is not said in the room; whoever looks at the room sees it all the same.
function tellAside(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const notice = made.content.querySelector("li.notice.agent, li.notice.bot");
  const place = find("#told");
  if (!notice || !place) return;
  const [told, who] = [document.createElement("p"), document.createElement("b")];
  told.className = "told";
  who.textContent = notice.dataset.sender;
  told.append(who, `, to you: ${notice.querySelector(".text").textContent.trim()}`);
  place.replaceChildren(told);
}

const isRefused = (xhr) => xhr.getResponseHeader("X-Refused") !== null;

document.addEventListener("htmx:afterRequest", (event) => {
  const { xhr, elt } = event.detail;
  if (!isRefused(xhr)) return;
  const own = elt.closest("form")?.querySelector("[role=alert]");
  tell(wordsOf(xhr.responseText), own || undefined);
});
document.addEventListener("htmx:responseError", (event) => {
  const { xhr, elt } = event.detail;
  if (xhr.status === 401) return leave();
  const own = elt.closest("form")?.querySelector("[role=alert]");
  tell(wordsOf(xhr.responseText) || `The page answers with ${xhr.status}.`, own || undefined);
});
document.addEventListener("htmx:sendError", (event) => {
  const own = event.detail.elt.closest("form")?.querySelector("[role=alert]");
  // A part that the page fetches by itself is no news: that it is cut off is told above.
  if (!own && event.detail.requestConfig?.verb !== "post") return;
  tell("The page cannot be reached at the moment; nothing was sent. Try again.", own || undefined);
});
document.addEventListener("htmx:beforeRequest", (event) => {
  const own = event.detail.elt.closest("form")?.querySelector("[role=alert]");
  if (own) tell("", own);
  else if (event.detail.requestConfig?.verb === "post") tell("");
});

// Times in the zone of whoever looks.

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
document.addEventListener("htmx:afterSwap", () => { showTimes(); showCount(); });

// What calls the one who looks, in the title of the tab.

const title = document.title;
function showCount() {
  const counts = [...document.querySelectorAll("#sidebar .count.calls")].map((each) => Number(each.textContent));
  const sum = counts.reduce((all, each) => all + each, 0);
  document.title = sum ? `(${sum}) ${title}` : title;
}

// The messages of the room that is open.

const list = () => find("#messages");
const isLive = () => room() && !room().dataset.at;
const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 80;
const toEnd = () => { const box = list(); if (box) box.scrollTop = box.scrollHeight; };

function append(html) {
  const box = list();
  const stays = !isAtEnd(box);
  const made = document.createElement("template");
  made.innerHTML = html;
  for (const item of made.content.querySelectorAll("li")) {
    if (!document.getElementById(item.id)) box.append(item);
  }
  showTimes(box);
  if (!stays) toEnd();
}

let marking = 0;
function markRead() {
  if (!isLive() || document.hidden || !document.hasFocus()) return;
  clearTimeout(marking);
  marking = setTimeout(() => post("/read", { room: room().dataset.room }).catch(() => {}), 400);
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

// Parts of the page that follow the news: fetched anew at once, then once a second at most, and always once more after
// the last news. htmx would lose news that come while a part is on its way (whatever waits goes with the part that is
// replaced) or within its own throttle, and with its delay a busy room would never be shown.

const PACE = 1000;
const resting = new Map(); // the name of a part's news -> whether there were more since

const isOnItsWay = (name) => find(`.htmx-request[hx-trigger*="${name} from:body"]`) !== null;

function happened(name) {
  if (resting.has(name)) return resting.set(name, true);
  const waits = isOnItsWay(name);
  resting.set(name, waits);
  setTimeout(() => rest(name), waits ? PACE / 10 : PACE);
  if (!waits) document.body.dispatchEvent(new CustomEvent(name));
}

function rest(name) {
  const more = resting.get(name);
  resting.delete(name);
  if (more) happened(name);
}

// The menu stays open while it is used; what it missed is fetched when it closes.

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "nav" && find("#nav details[open]")) event.detail.shouldSwap = false;
});
document.addEventListener("toggle", (event) => {
  if (event.target.matches("#nav details") && !event.target.open) happened("facts:alert");
}, true);

// News.

let source = null;
let last = document.body.dataset.news || "";
let pause = 1000;
let hiddenAt = 0;
const ASLEEP = 20000; // A phone may have cut the stream in the meantime and not said so.

function showState(text) {
  const place = find("#link-state");
  if (!place) return;
  place.hidden = !text;
  place.textContent = text;
  document.body.classList.toggle("is-cut-off", Boolean(text));
}

function leave() {
  location.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
}

const ON = {
  here() {},
  message(news) {
    if (isLive() && fold(news.room) === fold(room().dataset.room)) {
      append(news.html);
      markRead();
    } else if (isLive() && !news.room.startsWith("#")) {
      tellAside(news.html);
    }
    happened("rooms");
  },
  rooms() { happened("rooms"); },
  members(news) {
    if (room() && (!news.room || fold(news.room) === fold(room().dataset.room))) happened("members");
  },
  topic(news) {
    if (room() && fold(news.room) === fold(room().dataset.room)) happened("topic");
  },
  facts(news) {
    happened("facts");
    for (const kind of news.kinds) happened(`facts:${kind}`);
  },
  state(news) {
    if (news.condition === "connected") {
      const wasCut = document.body.classList.contains("is-cut-off");
      showState("");
      if (wasCut) ON.resync();
    } else if (news.condition === "hopeless") {
      showState(`The server does not let you in any longer: ${news.reason}`);
    } else {
      showState("The server cannot be reached at the moment; it is tried again by itself.");
    }
  },
  resync() {
    catchUp();
    for (const name of ["rooms", "members", "topic", "facts"]) happened(name);
    for (const kind of ["state", "question", "spend", "alert", "task", "link"]) happened(`facts:${kind}`);
  },
  ended() { leave(); },
};

function listen() {
  source?.close();
  source = new EventSource(`/events${last ? `?last=${encodeURIComponent(last)}` : ""}`);
  source.onopen = () => { pause = 1000; };
  source.onerror = () => {
    showState("The page is cut off; it comes back by itself.");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(again, pause);
    pause = Math.min(pause * 2, 10000);
  };
  for (const [name, act] of Object.entries(ON)) {
    source.addEventListener(name, (event) => {
      if (event.lastEventId) last = event.lastEventId;
      act(JSON.parse(event.data));
    });
  }
}

async function again() {
  const answer = await fetch("/whoami", { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer && answer.status === 401) return leave();
  listen();
}

// The composer: Enter sends, what was typed outlives errors and changes of the room.

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

// Keys, for whoever is not typing: / search, c compose, j and k the next and the previous room.

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

// The beginning.

showTimes();
showCount();
if (account) {
  setUpComposer();
  const at = room()?.dataset.at && document.getElementById(`m-${room().dataset.at}`);
  if (at) { at.classList.add("found"); at.scrollIntoView({ block: "center" }); }
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

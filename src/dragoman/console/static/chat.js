// One conversation: turns come whole from the server; what happens after them is added from the stream.
// Text of models, tools and people is only ever set as text. HTML is what the server has made.

import { Composer } from "./chat_composer.js";
import { Markdown } from "./chat_markdown.js";
import { follow } from "./chat_stream.js";

const chat = document.querySelector(".chat");
const thread = chat.dataset.thread;
const talk = document.getElementById("talk"); // of a blank chat: what stands in its place
const live = document.getElementById("live");
const typing = document.getElementById("typing");
const said = document.getElementById("said");
const stop = document.getElementById("stop");
const subtitle = document.querySelector(".top-text p");

const OVER = ["done", "failed", "cancelled"];
const HIDDEN = ["ask_person", "state_plan"];
const IN_BETWEEN = ["text", "call.progress"]; // who works is the same after these

// Asking the server

const ask = async (address, options = {}) => {
  const headers = { "HX-Request": "true", "X-CSRF-Token": document.body.dataset.csrf };
  const response = await fetch(address, { ...options, headers });
  if (response.headers.has("hx-redirect")) {
    location.assign(response.headers.get("hx-redirect"));
    return response;
  }
  if (response.headers.has("hx-retarget")) {
    document.getElementById("notes").append(fragment(await response.text()));
    throw new Refused();
  }
  if (!response.ok) throw new Refused(response.status);
  return response;
};

class Refused extends Error {}

const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
};

// Where the reader is: new words move the view only for who reads the last ones.

// Where that is gets known by scrolling alone, and the view moves once a frame: to measure the page after every word
// of a long answer would lay it out as often.

const atEnd = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 90;
let follows = true;
let viewed = 0; // of the view; who scrolls up leaves the end, and what grows below them does not
let moving = 0;
talk?.addEventListener("scroll", () => {
  follows = atEnd() || (follows && talk.scrollTop >= viewed);
  viewed = talk.scrollTop;
});
const keepingPlace = (change) => {
  change();
  if (!follows || moving) return;
  moving = requestAnimationFrame(() => {
    moving = 0;
    if (follows) talk.scrollTop = talk.scrollHeight;
  });
};

if (talk) new ResizeObserver(() => keepingPlace(() => {})).observe(talk); // a phone that is turned

// Pieces

const piece = (name) => document.getElementById(`${name}-piece`).content.firstElementChild.cloneNode(true);
const slot = (node, name) => node.querySelector(`[data-slot="${name}"]`);
const turnOf = (root) => document.getElementById(`turn-${root}`);
const workOf = (turn, run) => turn.querySelector(`[data-run="${CSS.escape(run)}"]`);
const callOf = (turn, run, key) => turn.querySelector(`[data-call="${CSS.escape(`${run} ${key}`)}"]`);
const piecesOf = (work) => work.querySelector("[data-pieces]");

const pretty = (value) => {
  if (value == null) return "";
  if (typeof value === "string") return value;
  const names = Object.keys(value);
  if (names.length === 1 && typeof value.code === "string") return value.code;
  return JSON.stringify(value, null, 2);
};

const dotted = (tool) => tool.replace(/^mcp_([a-z][a-z0-9-]*)_(.+)$/, "$1.$2");

const took = (milliseconds) => {
  if (milliseconds == null) return "–";
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
};

// Words are Markdown, which the server has sent as it was said; `data-open` where more of it comes.
const spoken = new WeakMap();
const speak = (words, run) => {
  const text = words.textContent;
  words.textContent = "";
  const markdown = new Markdown(words, run, keepingPlace);
  spoken.set(words, markdown);
  markdown.append(text);
  if (!("open" in words.dataset)) markdown.end();
};
const runOf = (part) => part.closest("[data-run]")?.dataset.run ?? "";
const showWords = (place) => {
  for (const words of place.querySelectorAll(".words:not(.shown)")) speak(words, runOf(words));
};
const endWords = (pieces) => {
  const markdown = spoken.get(pieces.lastElementChild);
  if (markdown && !markdown.isOver) markdown.end();
};

// What stands on the page already is taken over: words as they were drawn, cards that were open, forms with what
// was typed into them.
const isSame = (old, fresh) => old?.dataset.status === fresh.dataset.status;
const keepWhatStands = (old, fresh) => {
  for (const asks of fresh.querySelectorAll(".asks")) {
    const same = old.querySelector(`#${CSS.escape(asks.id)}`);
    if (isSame(same, asks)) asks.replaceWith(same);
  }
  if (old.querySelector(".said-edit")) fresh.querySelector(".me")?.replaceWith(old.querySelector(".me"));
  for (const open of old.querySelectorAll("details[data-keep][open]")) {
    const same = fresh.querySelector(`details[data-keep="${CSS.escape(open.dataset.keep)}"]`);
    if (same) same.open = true;
  }
  const drawn = [...old.querySelectorAll(".words.shown")];
  for (const words of fresh.querySelectorAll(".words")) {
    const run = runOf(words);
    const same = drawn.find((one) => runOf(one) === run && one.dataset.turn === words.dataset.turn && spoken.get(one)?.source === words.textContent);
    if (!same) continue;
    drawn.splice(drawn.indexOf(same), 1);
    if (!("open" in words.dataset)) spoken.get(same).end();
    words.replaceWith(same);
  }
};

// A turn as the server has it now
const loadTurn = async (root) => {
  const html = fragment(await (await ask(`/chat/turns/${root}`)).text());
  const fresh = html.firstElementChild;
  const old = turnOf(root);
  keepingPlace(() => {
    document.getElementById("nothing")?.remove();
    if (!old) talk.append(fresh);
    else if (Number(old.dataset.number) <= Number(fresh.dataset.number)) {
      keepWhatStands(old, fresh);
      old.replaceWith(fresh);
    }
    showWords(turnOf(root));
  });
  htmx.process(turnOf(root));
  showState();
};

const showAsk = async (kind, name, place) => {
  const html = fragment(await (await ask(`/chat/${kind}s/${name}`)).text());
  const fresh = html.firstElementChild;
  const old = document.getElementById(fresh.id);
  if (isSame(old, fresh)) return; // somebody may be typing there
  keepingPlace(() => (old ? old.replaceWith(fresh) : place.append(fresh)));
  htmx.process(fresh);
};

// What happened

const beginWork = (turn, event) => {
  if (workOf(turn, event.run)) return workOf(turn, event.run).dataset.state = "running";
  const call = event.data.parent && callOf(turn, event.data.parent, event.data.call);
  const work = piece(call ? "nested" : "work");
  Object.assign(work.dataset, { run: event.run, agent: event.agent, state: "running" });
  slot(work, "agent").textContent = event.agent || "Dragoman";
  slot(work, "initials").textContent = (event.agent || "dragoman").slice(0, 2).toUpperCase();
  if (call) slot(work, "request").textContent = event.data.request ?? "";
  (call ?? turn).querySelector("[data-works]").append(work);
};

const addWords = (turn, { run, data }) => {
  const pieces = piecesOf(workOf(turn, run));
  let words = pieces.lastElementChild;
  if (!words?.matches(".words") || words.dataset.turn !== String(data.turn)) {
    words = document.createElement("div");
    words.className = "words prose";
    Object.assign(words.dataset, { turn: data.turn, open: "" });
    addPiece(pieces, words);
    speak(words, run);
  }
  spoken.get(words).append(data.delta);
};

const addPiece = (pieces, one) => {
  endWords(pieces);
  pieces.append(one);
};

const beginCall = (turn, { run, data }) => {
  if (HIDDEN.includes(data.tool) && data.kind !== "tool") return;
  let call = callOf(turn, run, data.call);
  if (!call) {
    call = piece("call");
    call.dataset.call = `${run} ${data.call}`;
    addPiece(piecesOf(workOf(turn, run)), call);
  }
  call.dataset.state = "running";
  call.dataset.title = dotted(data.title || data.tool);
  slot(call, "title").textContent = `Executing: ${call.dataset.title}…`;
  slot(call, "tool").textContent = dotted(data.tool) === call.dataset.title ? "" : dotted(data.tool);
  slot(call, "arguments").textContent = pretty(data.arguments) || "none";
};

const tellProgress = (turn, { run, data }) => {
  const call = callOf(turn, run, data.call);
  const part = data.progress != null && data.total != null ? `${data.progress} of ${data.total}` : "";
  if (call) slot(call, "time").textContent = [part, data.message].filter(Boolean).join(" · ");
};

const endCall = (turn, { run, data }) => {
  const call = callOf(turn, run, data.call);
  if (!call) return;
  call.dataset.state = data.ok ? "done" : "failed";
  slot(call, "title").textContent = call.dataset.title;
  slot(call, "time").textContent = (data.ok ? "" : `${data.code} · `) + took(data.duration_ms);
  slot(call, "result").textContent = pretty(data.preview) || "none";
  for (const one of data.media ?? []) showMedia(call.querySelector("[data-media]"), one, dotted(data.tool));
};

// Until the turn is loaded: a picture or a sound alone
const showMedia = (place, { handle, media_type: kind }, tool) => {
  const frame = document.createElement("figure");
  frame.className = "media";
  const isSound = kind.startsWith("audio/");
  const made = document.createElement(isSound ? "audio" : "img");
  made.src = `/chat/media/${handle}`;
  if (isSound) made.controls = true;
  else made.alt = `Picture from ${tool}`;
  frame.append(made);
  place.append(frame);
};

const statePlan = (turn, { run, data }) => {
  const pieces = piecesOf(workOf(turn, run));
  pieces.querySelector(":scope > .plan")?.remove();
  const plan = piece("plan");
  for (const step of data.steps) {
    const line = document.createElement("li");
    line.textContent = [step.tool && dotted(step.tool), step.reason].filter(Boolean).join(": ");
    slot(plan, "steps").append(line);
  }
  addPiece(pieces, plan);
};

const giveNotice = (turn, { run, data }) => {
  const notice = piece("notice");
  slot(notice, "text").textContent = data.text;
  addPiece(piecesOf(workOf(turn, run)), notice);
  announce(data.text);
};

const setState = (turn, event, state) => {
  const work = workOf(turn, event.run);
  if (work) work.dataset.state = state;
  if (work && state !== "running") endWords(piecesOf(work));
  if (event.run === event.root) turn.dataset.state = state;
};

const handle = async (event) => {
  let turn = turnOf(event.root);
  if (!turn) {
    await loadTurn(event.root);
    turn = turnOf(event.root);
  }
  if (event.number <= Number(turn.dataset.number)) return;
  // What belongs to a run that this page has never seen is in the turn as the server has it.
  const isNews = event.kind === "run.started" || workOf(turn, event.run) || event.run === event.root;
  const isOver = event.kind === "run.finished" && event.run === event.root;
  if (!isNews || isOver || event.kind === "run.resumed" || event.kind === "text.discarded") {
    await loadTurn(event.root);
    if (isOver) announce(`${event.agent || "Dragoman"} has answered`);
    turnOf(event.root).dataset.number = Math.max(event.number, turnOf(event.root).dataset.number);
    return;
  }
  await askPerson(turn, event); // first: what can fail is done again for an event that is not counted yet
  keepingPlace(() => apply(turn, event));
  turn.dataset.number = event.number;
  if (!IN_BETWEEN.includes(event.kind)) showState();
};

const apply = (turn, event) => {
  switch (event.kind) {
    case "run.started": beginWork(turn, event); setState(turn, event, "running"); break;
    case "run.continued": setState(turn, event, "running"); break;
    case "run.waiting": setState(turn, event, "waiting"); break;
    case "run.finished": setState(turn, event, event.data.status); break;
    case "text": addWords(turn, event); break;
    case "call.started": beginCall(turn, event); break;
    case "call.progress": tellProgress(turn, event); break;
    case "call.finished": endCall(turn, event); break;
    case "plan.stated": statePlan(turn, event); break;
    case "notice": giveNotice(turn, event); break;
  }
};

const askPerson = async (turn, { kind, run, data }) => {
  if (!/^(approval|question)\./.test(kind)) return;
  const pieces = piecesOf(workOf(turn, run));
  if (kind.startsWith("approval.")) {
    const call = callOf(turn, run, data.call);
    await showAsk("approval", data.approval, call?.querySelector("[data-asks]") ?? pieces);
    const isAsked = kind === "approval.requested";
    if (isAsked) announce("Approval needed");
    if (call) slot(call, "title").textContent = `${isAsked ? "Waits for you" : "Executing"}: ${call.dataset.title}${isAsked ? "" : "…"}`;
  } else if (kind.startsWith("question.")) {
    await showAsk("question", data.question, pieces);
    if (kind === "question.asked") announce(`Question: ${data.text}`);
  }
};

const announce = (text) => (said.textContent = text);

// Who is at work, and whether there is something to stop

const openTurns = () => [...talk.querySelectorAll(".turn")].filter((turn) => !OVER.includes(turn.dataset.state));

const showState = () => {
  const open = openTurns();
  const working = open.flatMap((turn) => [...turn.querySelectorAll('[data-run][data-state="running"]')]);
  const names = [...new Set(working.map((work) => work.dataset.agent).filter(Boolean))];
  typing.hidden = names.length === 0;
  typing.lastElementChild.textContent = `${names.join(", ")} ${names.length > 1 ? "are" : "is"} working`;
  stop.hidden = open.length === 0;
  const present = [...new Set([...talk.querySelectorAll("[data-run]")].map((work) => work.dataset.agent))].filter(Boolean);
  const number = `${present.length} agent${present.length > 1 ? "s" : ""} in this chat`;
  if (present.length) subtitle.textContent = `${present.join(", ")} · ${number}`;
  const last = talk.querySelector(".turn:last-of-type");
  const spoke = last && [...last.querySelectorAll(":scope > [data-works] > [data-run]")].map((work) => work.dataset.agent);
  if (spoke?.length === 1 && spoke[0]) composer.goesTo(spoke[0]);
  showClocks(talk);
};

// Times of day in the reader's own zone
const showClocks = (place) => {
  for (const time of place.querySelectorAll("time[data-clock]")) {
    const when = new Date(time.dateTime);
    const isToday = when.toDateString() === new Date().toDateString();
    const day = isToday ? "" : `${when.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, `;
    time.textContent = day + when.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
    time.removeAttribute("data-clock");
  }
};

// The stream

const states = { live: "live", connecting: "connecting", lost: "offline: trying again", gone: "this chat is gone" };
const showLive = (state) => {
  live.dataset.state = state;
  live.lastElementChild.textContent = states[state];
  if (state === "live") composer.say("");
};

// A part that cannot be fetched now is fetched again: events stay in order and none is dropped.
const handleSurely = async (event) => {
  for (let wait = 300; ; wait = Math.min(wait * 2, 5000)) {
    try {
      return await handle(event);
    } catch (error) {
      if (error instanceof Refused) return;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
};

// Writing

const composer = new Composer(document.getElementById("composer"), async (text, files, to) => {
  const body = files.length ? new FormData() : new URLSearchParams();
  body.append("text", text);
  body.append("time_zone", Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
  for (const [name, value] of Object.entries(to)) if (value) body.append(name, value);
  for (const file of files) body.append("file", file);
  const { thread: where, root } = await (await ask(thread ? `/chat/${thread}` : "/chat", { method: "POST", body })).json();
  if (!thread) return location.assign(`/chat/${where}`);
  if (!turnOf(root)) await loadTurn(root);
  talk.scrollTop = talk.scrollHeight;
});

stop.addEventListener("click", async () => {
  const [turn] = openTurns();
  if (turn) await ask(`/chat/runs/${turn.dataset.root}/stop`, { method: "POST" }).catch(() => {});
  composer.focus();
});

const post = (address, facts = {}) => ask(address, { method: "POST", body: new URLSearchParams(facts) });

const rootOf = (part) => part.closest(".turn").dataset.root;

const retry = async (button) => {
  const { model = "" } = button.dataset;
  const { root } = await (await post(`/chat/runs/${rootOf(button)}/retry`, { model })).json();
  if (!turnOf(root)) await loadTurn(root);
  talk.scrollTop = talk.scrollHeight;
};

const copy = async (text) => {
  await navigator.clipboard.writeText(text);
  announce("Copied");
};

// As it was written, not as it is drawn
const copyAnswer = (button) => {
  const words = [...button.closest(".turn").querySelectorAll(".words")].at(-1);
  return copy(spoken.get(words).source);
};

const copyCode = async (button) => {
  await copy(button.closest(".code-block").querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
};

const saidIn = (me) => me.querySelector(".said").firstChild.data;

// The message in other words: a chat of its own begins there.
const edit = (button) => {
  const me = button.closest(".me");
  if (me.querySelector("form")) return;
  const form = document.createElement("form");
  form.className = "said-edit";
  const field = document.createElement("textarea");
  field.value = saidIn(me);
  field.setAttribute("aria-label", "The message in other words");
  const row = document.createElement("div");
  row.className = "row end";
  const cancel = Object.assign(document.createElement("button"), { type: "button", className: "small quiet", textContent: "Cancel" });
  const send = Object.assign(document.createElement("button"), { className: "small primary", textContent: "Send" });
  row.append(cancel, send);
  form.append(field, row);
  const end = () => {
    form.remove();
    for (const part of me.children) part.hidden = false;
  };
  cancel.addEventListener("click", end);
  field.addEventListener("keydown", (event) => event.key === "Escape" && end());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    post(`/chat/runs/${rootOf(me)}/edit`, { text: field.value }).catch(() => {});
  });
  for (const part of me.children) part.hidden = true;
  me.append(form);
  field.focus();
};

const rename = () => {
  const title = document.getElementById("title");
  if (title.querySelector("form")) return;
  const before = title.textContent;
  const form = document.createElement("form");
  form.className = "rename";
  const field = Object.assign(document.createElement("input"), { value: before, maxLength: 200 });
  field.setAttribute("aria-label", "Title");
  form.append(field);
  let isOver = false;
  const end = (words) => {
    isOver = true;
    title.textContent = words;
  };
  const save = async () => {
    if (isOver) return;
    isOver = true;
    const { title: words } = await (await post(`/chat/${encodeURIComponent(thread)}/title`, { title: field.value })).json();
    end(words);
    document.title = document.title.replace(before, words);
    const entry = document.querySelector('.thread[aria-current="page"] .cut');
    if (entry) entry.textContent = words;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save().catch(() => end(before));
  });
  field.addEventListener("blur", () => save().catch(() => end(before)));
  field.addEventListener("keydown", (event) => event.key === "Escape" && end(before));
  title.replaceChildren(form);
  field.select();
};

const pin = async (button) => {
  const { pinned } = await (await post(`/chat/${encodeURIComponent(thread)}/pin`)).json();
  button.setAttribute("aria-pressed", String(pinned));
  announce(pinned ? "Pinned" : "Not pinned any more");
  const list = document.getElementById("thread-list");
  list.innerHTML = await (await ask(`/chat/lists/threads?open=${encodeURIComponent(thread)}`)).text();
  htmx.process(list);
};

const DOES = {
  "[data-copy]": () => announce("Copied"), // console.js has done it
  "[data-copy-said]": (button) => copy(saidIn(button.closest(".me"))),
  "[data-copy-answer]": copyAnswer,
  "[data-copy-code]": copyCode,
  "[data-retry]": retry,
  "[data-branch]": (button) => post(`/chat/runs/${rootOf(button)}/branch`),
  "[data-edit]": edit,
  "[data-rename]": rename,
  "#pin": pin,
  "#delete": () => ask(`/chat/${encodeURIComponent(thread)}`, { method: "DELETE" }),
  "[data-restore]": ({ dataset }) => post(`/chat/${encodeURIComponent(dataset.restore)}/restore`),
  "[data-start]": ({ dataset }) => composer.write(dataset.start),
  "[data-to]": ({ dataset }) => composer.choose(dataset.to),
  "#choose": async () => (await import("./chat_choosing.js")).toggle(),
  "#lists": (button) => button.setAttribute("aria-expanded", String(chat.classList.toggle("lists"))),
};
document.addEventListener("click", (event) => {
  for (const [what, does] of Object.entries(DOES)) {
    const found = event.target.closest(what);
    if (found) Promise.resolve(does(found)).catch(() => {});
  }
});

// A title that is cut is told whole to who points at it.
document.getElementById("threads").addEventListener("pointerover", ({ target }) => {
  const title = target.closest(".thread")?.querySelector(".cut");
  if (title && title.scrollWidth > title.clientWidth) title.title = title.textContent;
});

// A footnote opens its source, where it stands.
const openSource = () => {
  const source = location.hash.startsWith("#source-") && document.getElementById(location.hash.slice(1));
  if (source) source.open = true;
};
addEventListener("hashchange", openSource);

// What a menu has is fetched when it is opened first.
document.addEventListener(
  "toggle",
  async ({ target }) => {
    const body = target.open && target.querySelector?.(":scope > [data-load]");
    if (!body) return;
    const html = await (await ask(body.dataset.load)).text();
    body.removeAttribute("data-load");
    body.replaceChildren(fragment(html));
    htmx.process(body);
  },
  true, // it does not bubble
);

// Menus close by Escape, by a choice and by a click elsewhere.
document.addEventListener("click", (event) => {
  for (const drop of document.querySelectorAll("[data-drop][open]")) {
    const isChoice = drop.contains(event.target) && event.target.closest(".drop-body > a, .drop-body > button");
    if (!drop.contains(event.target) || isChoice) drop.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const drop of document.querySelectorAll("[data-drop][open]")) {
    drop.open = false;
    drop.querySelector("summary").focus();
  }
});

const greeting = document.getElementById("greeting");
if (greeting?.dataset.name) {
  const hour = new Date().getHours();
  const part = hour < 5 || hour > 17 ? "evening" : hour < 12 ? "morning" : "afternoon";
  greeting.textContent = `Good ${part}, ${greeting.dataset.name.split(" ")[0]}`;
}
const deleted = document.getElementById("deleted");
if (deleted) {
  history.replaceState(null, "", "/chat");
  setTimeout(() => deleted.remove(), 9_000);
}
showWords(document);
document.addEventListener("htmx:after:swap", () => showWords(document));
talk.scrollTop = talk.scrollHeight;
showState();
openSource();
if (thread) follow(`/chat/${thread}/events`, chat.dataset.position, handleSurely, showLive);

// One conversation: turns come whole from the server; what happens after them is added from the stream.
// Text of models, tools and people is only ever set as text. HTML is what the server has made.

import { Composer } from "./chat_composer.js";
import { follow } from "./chat_stream.js";

const chat = document.querySelector(".chat");
const thread = chat.dataset.thread;
const talk = document.getElementById("talk");
const live = document.getElementById("live");
const typing = document.getElementById("typing");
const said = document.getElementById("said");
const stop = document.getElementById("stop");
const subtitle = document.querySelector(".top-text p");

const OVER = ["done", "failed", "cancelled"];
const HIDDEN = ["ask_person", "state_plan"];

// Asking the server

const ask = async (address, options = {}) => {
  const headers = { "HX-Request": "true", "X-CSRF-Token": document.body.dataset.csrf };
  const response = await fetch(address, { ...options, headers });
  if (response.headers.has("hx-redirect")) location.assign(response.headers.get("hx-redirect"));
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

const atEnd = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 90;
const keepingPlace = (change) => {
  const follows = atEnd();
  change();
  if (follows) talk.scrollTop = talk.scrollHeight;
};

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

const took = (milliseconds) => {
  if (milliseconds == null) return "–";
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
};

// A turn as the server has it now. Cards that were open stay open.
const loadTurn = async (root) => {
  const html = fragment(await (await ask(`/chat/turns/${root}`)).text());
  const fresh = html.firstElementChild;
  const old = turnOf(root);
  keepingPlace(() => {
    document.getElementById("nothing")?.remove();
    if (!old) talk.append(fresh);
    else if (Number(old.dataset.number) <= Number(fresh.dataset.number)) {
      for (const open of old.querySelectorAll("[data-call] > details[open]")) {
        const same = fresh.querySelector(`[data-call="${CSS.escape(open.parentElement.dataset.call)}"] > details`);
        if (same) same.open = true;
      }
      old.replaceWith(fresh);
    }
  });
  htmx.process(turnOf(root));
  showState();
};

// While a person is waited for, what was said until then. Nothing else is touched: they may be typing.
const showWordsAsMeant = async (turn) => {
  const html = fragment(await (await ask(`/chat/turns/${turn.dataset.root}`)).text());
  keepingPlace(() => {
    for (const plain of turn.querySelectorAll(".plain-words")) {
      const run = plain.closest("[data-run]").dataset.run;
      const work = html.querySelector(`[data-run="${CSS.escape(run)}"]`);
      const words = work && piecesOf(work).querySelector(`:scope > .prose[data-turn="${plain.dataset.turn}"]`);
      if (words) plain.replaceWith(words);
    }
  });
};

const showAsk = async (kind, name, place) => {
  const html = fragment(await (await ask(`/chat/${kind}s/${name}`)).text());
  const fresh = html.firstElementChild;
  const old = document.getElementById(fresh.id);
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
  if (!words?.matches(".plain-words") || words.dataset.turn !== String(data.turn)) {
    words = document.createElement("div");
    words.className = "words plain-words";
    words.dataset.turn = data.turn;
    pieces.append(words);
  }
  if (words.lastChild) words.lastChild.appendData(data.delta);
  else words.append(data.delta);
};

const beginCall = (turn, { run, data }) => {
  if (HIDDEN.includes(data.tool) && data.kind !== "tool") return;
  let call = callOf(turn, run, data.call);
  if (!call) {
    call = piece("call");
    call.dataset.call = `${run} ${data.call}`;
    piecesOf(workOf(turn, run)).append(call);
  }
  call.dataset.state = "running";
  call.dataset.title = data.title || data.tool;
  slot(call, "title").textContent = `Executing: ${call.dataset.title}…`;
  slot(call, "tool").textContent = data.tool === call.dataset.title ? "" : data.tool;
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
};

const statePlan = (turn, { run, data }) => {
  const pieces = piecesOf(workOf(turn, run));
  pieces.querySelector(":scope > .plan")?.remove();
  const plan = piece("plan");
  for (const step of data.steps) {
    const line = document.createElement("li");
    line.textContent = [step.tool, step.reason].filter(Boolean).join(": ");
    slot(plan, "steps").append(line);
  }
  pieces.append(plan);
};

const giveNotice = (turn, { run, data }) => {
  const notice = piece("notice");
  slot(notice, "text").textContent = data.text;
  piecesOf(workOf(turn, run)).append(notice);
  announce(data.text);
};

const setState = (turn, event, state) => {
  const work = workOf(turn, event.run);
  if (work) work.dataset.state = state;
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
  showState();
  if (event.kind === "run.waiting") await showWordsAsMeant(turn);
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
};

// The stream

const states = {
  live: ["ready", "live"],
  connecting: ["connecting", "connecting"],
  lost: ["bad", "offline: trying again"],
  gone: ["bad", "this chat is gone"],
};
const showLive = (state) => {
  const [look, words] = states[state];
  live.className = `chip ${look}`;
  live.dataset.state = state;
  live.lastElementChild.textContent = words;
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

const composer = new Composer(document.getElementById("composer"), async (text, files) => {
  const body = files.length ? new FormData() : new URLSearchParams();
  body.append("text", text);
  body.append("time_zone", Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
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

talk.addEventListener("click", async (event) => {
  if (event.target.closest("[data-copy]")) return announce("Copied"); // console.js has done it
  const button = event.target.closest("[data-retry]");
  if (!button) return;
  const { root } = await (await ask(`/chat/runs/${button.dataset.retry}/retry`, { method: "POST" })).json();
  if (!turnOf(root)) await loadTurn(root);
  talk.scrollTop = talk.scrollHeight;
});

// Panels close by Escape and by a click elsewhere.
const drops = [...document.querySelectorAll("[data-drop]")];
document.addEventListener("click", (event) => {
  for (const drop of drops) if (!drop.contains(event.target)) drop.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const drop of drops.filter((one) => one.open)) {
    drop.open = false;
    drop.querySelector("summary").focus();
  }
});

talk.scrollTop = talk.scrollHeight;
showState();
if (thread) follow(`/chat/${thread}/events`, chat.dataset.position, handleSurely, showLive);

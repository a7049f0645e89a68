// What happens, line by line: chosen by group and words, and held back while a person reads.

import { follow } from "./chat_stream.js";

const MOST = 500;
const find = (id) => document.getElementById(id);
const lines = find("log-lines");
const pause = find("log-pause");
const held = [];
const states = {
  live: ["good", "live"],
  connecting: ["warn", "connecting"],
  lost: ["bad", "lost: trying again"],
  gone: ["bad", "gone"],
};

const isPaused = () => pause.dataset.on === "yes";

const fits = (row) => {
  const group = find("group").value;
  const words = find("words").value.trim().toLowerCase();
  return (
    (!group || row.dataset.group === group) &&
    (!find("bad-only").checked || row.dataset.tone === "bad") &&
    (!words || row.textContent.toLowerCase().includes(words))
  );
};

const showEmpty = () => {
  find("log-table").hidden = !lines.childElementCount;
  find("log-empty").hidden = !!lines.childElementCount;
};

const add = (event) => {
  const row = find("log-line").content.cloneNode(true).firstElementChild;
  row.dataset.group = event.group;
  row.dataset.tone = event.tone;
  const time = row.querySelector("time");
  time.dateTime = event.time;
  time.textContent = new Date(event.time).toTimeString().slice(0, 8);
  row.querySelector(".chip").classList.add(...(event.tone ? [event.tone] : []));
  row.querySelector(".log-kind").textContent = event.kind;
  row.querySelector(".log-text").textContent = event.text;
  row.querySelector("pre").textContent = event.data;
  row.hidden = !fits(row);
  lines.prepend(row);
  while (lines.childElementCount > MOST) lines.lastElementChild.remove();
};

const showHeld = () => {
  find("log-waiting").textContent = held.length ? `${held.length} more since` : "";
};

const hear = (event) => {
  if (isPaused()) {
    held.push(event);
    if (held.length > MOST) held.shift();
    showHeld();
    return;
  }
  add(event);
  showEmpty();
};

const showState = (state) => {
  const chip = find("log-state");
  const [tone, text] = states[state];
  chip.className = `chip ${tone}`;
  chip.lastElementChild.textContent = text;
};

pause.addEventListener("click", () => {
  const on = !isPaused();
  pause.dataset.on = on ? "yes" : "no";
  pause.textContent = on ? "Resume" : "Pause";
  if (!on) held.splice(0).forEach(add);
  showHeld();
  showEmpty();
});

find("log-clear").addEventListener("click", () => {
  lines.replaceChildren();
  showEmpty();
});

find("log-filter").addEventListener("submit", (event) => event.preventDefault());
find("log-filter").addEventListener("input", () => {
  for (const row of lines.children) row.hidden = !fits(row);
});

follow("/log/events", "", hear, showState);

// Several chats at once: while choosing, a click on a chat ticks it; what is done to them is the server's.

const list = document.getElementById("thread-list");
const asked = (address) => fetch(address, { headers: { "HX-Request": "true" } });
list.insertAdjacentHTML("afterend", await (await asked("/chat/-/bulk")).text());
const bar = document.getElementById("chosen");
htmx.process(bar);
const button = document.getElementById("choose");
const chosen = new Set();
const idOf = (entry) => decodeURIComponent(entry.getAttribute("href").slice("/chat/".length));

const show = () => {
  const isOn = button.getAttribute("aria-pressed") === "true";
  list.classList.toggle("choosing", isOn);
  bar.hidden = !isOn;
  bar.querySelector("b").textContent = `${chosen.size} selected`;
  for (const one of bar.querySelectorAll("button")) one.disabled = !chosen.size;
  for (const old of bar.querySelectorAll("input")) old.remove();
  for (const id of chosen) bar.append(Object.assign(document.createElement("input"), { type: "hidden", name: "thread", value: id }));
  for (const entry of list.querySelectorAll(".thread")) {
    if (isOn) entry.setAttribute("role", "checkbox");
    else entry.removeAttribute("role");
    if (isOn) entry.setAttribute("aria-checked", String(chosen.has(idOf(entry))));
    else entry.removeAttribute("aria-checked");
  }
};

export const toggle = () => {
  button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
  chosen.clear();
  show();
};

const tick = (event) => {
  const entry = event.target.closest(".thread");
  if (!entry || bar.hidden) return;
  event.preventDefault();
  const id = idOf(entry);
  if (!chosen.delete(id)) chosen.add(id);
  show();
};
list.addEventListener("click", tick);
list.addEventListener("keydown", (event) => event.key === " " && tick(event));
list.addEventListener("htmx:after:swap", () => bar.hidden || show()); // more of the list, or what was searched for

bar.querySelector("[data-export]").addEventListener("click", () => {
  location.assign(`/chat/-/export?${new URLSearchParams([...chosen].map((id) => ["thread", id]))}`);
});
// Pinned ones move: the list is told anew.
document.addEventListener("htmx:after:request", async ({ detail: { ctx } }) => {
  if (!bar.contains(ctx.sourceElement) && ctx.sourceElement !== bar) return;
  const open = document.querySelector(".chat").dataset.thread;
  const response = await asked(`/chat/lists/threads?open=${encodeURIComponent(open)}`);
  if (!response.ok) return;
  list.innerHTML = await response.text();
  htmx.process(list);
  toggle();
});

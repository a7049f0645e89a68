// A connector dragged onto an agent is given to it: the agent's own form is filled in and sent.
// The same works without a mouse: each agent has a list to choose from.

const dropOf = (event) => event.target.closest?.("[data-agent]");
let dragged = null;

document.addEventListener("dragstart", (event) => {
  const piece = event.target.closest?.("[data-connector]");
  if (!piece) return;
  dragged = piece.dataset.connector;
  event.dataTransfer.setData("text/plain", dragged);
  event.dataTransfer.effectAllowed = "copy";
});

document.addEventListener("dragend", () => {
  dragged = null;
  document.querySelectorAll(".agents-over").forEach((card) => card.classList.remove("agents-over"));
});

document.addEventListener("dragover", (event) => {
  const card = dropOf(event);
  document.querySelectorAll(".agents-over").forEach((one) => one !== card && one.classList.remove("agents-over"));
  if (!card || dragged === null) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "copy";
  card.classList.add("agents-over");
});

document.addEventListener("drop", (event) => {
  const card = dropOf(event);
  if (!card || dragged === null) return;
  event.preventDefault();
  card.classList.remove("agents-over");
  const chosen = [...card.querySelectorAll("[name=connector]")].find((one) =>
    one.tagName === "SELECT" ? [...one.options].some((option) => option.value === dragged) : one.value === dragged,
  );
  if (!chosen) return; // it has it already
  chosen.value = dragged;
  chosen.form.requestSubmit();
});

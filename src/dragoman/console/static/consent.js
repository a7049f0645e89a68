// The consent page: finds connectors by name, and says in a sentence what is about to be allowed.

const form = document.querySelector(".consent-card");
const boxes = [...form.querySelectorAll("input[name=connector]")];
const list = form.querySelector("[data-list]");
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const bold = (text) => Object.assign(document.createElement("b"), { textContent: text });

const show = () => {
  const all = form.elements.use?.value === "all";
  const onlyReads = form.elements.do.value !== "write";
  const until = form.querySelector("input[name=period]:checked").dataset.until;
  const used = boxes.filter((box) => all || box.checked);
  const tools = used.reduce((sum, box) => sum + Number(onlyReads ? box.dataset.reads : box.dataset.tools), 0);
  if (list) list.hidden = all;
  const chosen = form.querySelector("[data-chosen]");
  if (chosen) chosen.textContent = all ? "also those added later" : `${used.length} chosen`;
  const summary = form.querySelector("[data-summary]");
  summary.replaceChildren(
    `${summary.dataset.name} gets `,
    bold(plural(tools, onlyReads ? "read-only tool" : "tool")),
    ` of ${plural(used.length, "connector")} `,
    bold(until ? `until ${until}` : "until you revoke it"),
    ".",
  );
};

form.addEventListener("change", show);
form.querySelector("[data-search]")?.addEventListener("input", (event) => {
  const word = event.target.value.trim().toLowerCase();
  for (const box of boxes) box.closest("label").hidden = !box.value.toLowerCase().includes(word);
});
show();

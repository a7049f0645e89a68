// Keeps what was exported with secrets out of sight and in a file: nothing of it is asked for again.

const shown = () => document.getElementById("exported");

const save = (name) => {
  const text = document.getElementById("exported-text").value;
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
};

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-save], [data-hide]");
  if (!target) return;
  if (target.matches("[data-save]")) save(target.dataset.save);
  else shown().replaceChildren();
});

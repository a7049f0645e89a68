// What a person opened stays open while the page around it is brought up to date.

htmx.registerExtension("stay-open", {
  htmx_before_morph_attr: (element, detail) => !(detail.attrName === "open" && element.tagName === "DETAILS"),
});

// The step that is shown beside stays marked, also when the bars are drawn anew.
let shown = "";
const mark = () => {
  for (const row of document.querySelectorAll("button.fall-row")) {
    row.setAttribute("aria-pressed", String(row.getAttribute("hx-get") === shown));
  }
};
document.addEventListener("click", (event) => {
  const row = event.target.closest("button.fall-row");
  if (row) shown = row.getAttribute("hx-get");
  mark();
});
document.addEventListener("htmx:after:swap", mark);

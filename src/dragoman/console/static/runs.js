// What a person opened stays open while the page around it is brought up to date.

htmx.registerExtension("stay-open", {
  htmx_before_morph_attr: (element, detail) => !(detail.attrName === "open" && element.tagName === "DETAILS"),
});

// While a server is started for the first time: for how long already, and the last that its program said.

const EVERY = 1000;

const follow = async (place, isOver) => {
  const began = Date.now();
  while (!isOver()) {
    const seconds = Math.round((Date.now() - began) / 1000);
    const response = await fetch(`/connectors/new/starting?seconds=${seconds}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (isOver()) return;
    place.innerHTML = response?.ok ? await response.text() : "";
    place.prepend(Object.assign(document.createElement("span"), { textContent: `${seconds} s` }));
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
};

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const place = ctx.sourceElement?.closest?.("form")?.querySelector("[data-starting]");
  if (!place || ctx.request?.method !== "POST") return;
  let isOver = false;
  const end = (event) => {
    if (event.detail.ctx !== ctx) return;
    isOver = true;
    place.replaceChildren();
    document.removeEventListener("htmx:finally:request", end);
  };
  document.addEventListener("htmx:finally:request", end);
  follow(place, () => isOver);
});

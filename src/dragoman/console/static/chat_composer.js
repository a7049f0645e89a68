// Where a message is written: Enter sends, Shift+Enter is a new line, @ offers who can be mentioned.

const MOST = 8;
const BEGUN = /(^|[\s(])@([^\s@]{0,40})$/;

export class Composer {
  constructor(form, send) {
    this.form = form;
    this.field = form.querySelector("textarea");
    this.list = form.querySelector("[role=listbox]");
    this.options = [...this.list.querySelectorAll("[role=option]")];
    this.send = send;
    this.busy = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.typed());
    this.field.addEventListener("blur", () => this.close());
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("[role=option]");
      if (option) this.take(option);
    });
    this.grow();
  }

  focus() {
    this.field.focus();
  }

  async submit() {
    const text = this.field.value;
    if (!text.trim() || this.busy) return;
    this.busy = true;
    this.field.value = "";
    this.grow();
    try {
      await this.send(text);
    } catch {
      if (!this.field.value) this.field.value = text; // what was not sent is not lost
      this.grow();
    } finally {
      this.busy = false;
    }
  }

  key(event) {
    if (!this.list.hidden && this.inList(event)) return event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    }
  }

  // Whether the key was for the list
  inList(event) {
    const shown = [...this.list.children].filter((option) => !option.hidden);
    const at = shown.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") this.select(shown[(at + 1) % shown.length]);
    else if (event.key === "ArrowUp") this.select(shown[(at - 1 + shown.length) % shown.length]);
    else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") this.take(shown[Math.max(at, 0)]);
    else if (event.key === "Escape") this.close();
    else return false;
    return true;
  }

  typed() {
    this.grow();
    const begun = this.begun();
    if (!begun) return this.close();
    const wanted = begun[2].toLowerCase();
    const fits = (test) => this.options.filter((option) => test(option.dataset.name.toLowerCase()));
    const best = new Set([...fits((name) => name.startsWith(wanted)), ...fits((name) => name.includes(wanted))]);
    const shown = [...best].slice(0, MOST);
    if (!shown.length) return this.close();
    for (const option of this.options) option.hidden = !shown.includes(option);
    this.list.append(...shown); // the best first
    this.list.hidden = false;
    this.select(shown[0]);
  }

  begun() {
    return BEGUN.exec(this.field.value.slice(0, this.field.selectionStart));
  }

  select(chosen) {
    for (const option of this.options) option.setAttribute("aria-selected", String(option === chosen));
    this.field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  take(option) {
    const begun = this.begun();
    const end = this.field.selectionStart;
    if (begun) this.field.setRangeText(`@${option.dataset.name} `, end - begun[2].length - 1, end, "end");
    this.close();
    this.grow();
  }

  close() {
    this.list.hidden = true;
    this.field.removeAttribute("aria-activedescendant");
  }

  // As high as what is written, within the stylesheet's bounds
  grow() {
    this.field.rows = Math.min(8, Math.max(1, this.field.value.split("\n").length));
  }
}

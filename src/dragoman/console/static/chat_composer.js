// Where a message is written: Enter sends, Shift+Enter is a new line, @ offers who can be mentioned.

const MOST = 8;
const BEGUN = /(^|[\s(])@([^\s@]{0,40})$/;

export class Composer {
  constructor(form, send) {
    this.form = form;
    this.field = form.querySelector("textarea");
    this.list = form.querySelector("[role=listbox]");
    this.agents = new Agents(this.list);
    this.send = send;
    this.busy = false;
    this.files = new Files(form);
    this.note = form.querySelector("#composer-note");
    this.to = new Recipient(form.querySelector("#to"), this.agents);
    this.model = new ModelChoice(form.querySelector("#model"));
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

  // What went wrong, where the person looks; nothing takes it away
  say(words) {
    this.note.hidden = !words;
    this.note.textContent = words;
  }

  write(text) {
    this.field.value = text;
    this.grow();
    this.focus();
  }

  // Whom the next message goes to if nobody is mentioned
  goesTo(name) {
    if (!this.to.chosen) this.to.show(name); // what the person chose counts until it is sent
  }

  choose(name) {
    this.to.choose(name);
    this.focus();
  }

  async submit() {
    const text = this.field.value;
    if (!text.trim() || this.busy) return;
    const files = this.files.take();
    const agent = this.to.chosen;
    this.to.chosen = ""; // what is chosen while this is sent is for the next
    this.busy = true;
    this.say("");
    this.field.value = "";
    this.grow();
    try {
      await this.send(text, files, { agent, model: this.model.chosen });
    } catch (error) {
      if (agent && !this.to.chosen) this.to.choose(agent);
      // A refusal is told by the server; whoever is offline hears nothing from it.
      if (error instanceof TypeError) this.say("Not sent: there is no connection. Your message is kept here; send it again once you are online.");
      if (!this.field.value) this.field.value = text; // what was not sent is not lost
      this.files.add(files);
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

  async typed() {
    this.grow();
    const wanted = this.begun()?.[2].toLowerCase();
    if (wanted === undefined) return this.close();
    this.offer(wanted);
    if ((await this.agents.find(wanted)) && this.begun()?.[2].toLowerCase() === wanted) this.offer(wanted);
  }

  offer(wanted) {
    const fits = (test) => this.agents.options.filter((option) => test(option.dataset.name.toLowerCase()));
    const best = new Set([...fits((name) => name.startsWith(wanted)), ...fits((name) => name.includes(wanted))]);
    const shown = [...best].slice(0, MOST);
    if (!shown.length) return this.close();
    for (const option of this.agents.options) option.hidden = !shown.includes(option);
    this.list.append(...shown); // the best first
    this.list.hidden = false;
    this.select(shown[0]);
  }

  begun() {
    return BEGUN.exec(this.field.value.slice(0, this.field.selectionStart));
  }

  select(chosen) {
    for (const option of this.agents.options) option.setAttribute("aria-selected", String(option === chosen));
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

// Who can be written to: asked of the server for what is typed, and kept, in the list that mentions are chosen from.
class Agents {
  constructor(list) {
    this.list = list;
    this.options = [];
    this.asked = new Set();
    this.areAll = false;
  }

  // Whether there are new ones
  async find(wanted) {
    if (this.areAll || this.asked.has(wanted)) return false;
    const response = await fetch(`/chat/lists/agents?q=${encodeURIComponent(wanted)}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!response?.ok) return false; // asked again with the next letter
    this.asked.add(wanted);
    const template = document.createElement("template");
    template.innerHTML = await response.text();
    this.areAll ||= !wanted && !template.content.querySelector("[data-more]");
    const names = new Set(this.options.map((one) => one.dataset.name));
    const fresh = [...template.content.querySelectorAll("[role=option]")].filter((one) => !names.has(one.dataset.name));
    for (const option of fresh) option.hidden = true;
    this.options.push(...fresh);
    this.list.append(...fresh);
    return fresh.length > 0;
  }
}

// A menu with a name on it: what is chosen there goes with the message.
class NamedMenu {
  constructor(menu) {
    this.menu = menu;
    this.body = menu.querySelector(".drop-body");
    this.chosen = ""; // by the person; else the server decides
  }

  name(words) {
    this.menu.querySelector('[data-slot="name"]').textContent = words;
  }
}

class Recipient extends NamedMenu {
  constructor(menu, agents) {
    super(menu);
    this.agents = agents;
    menu.addEventListener("toggle", () => menu.open && this.fill());
    this.body.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.choose(button.dataset.name);
    });
  }

  async fill(wanted = "") {
    this.wanted = wanted;
    this.offer(wanted);
    if ((await this.agents.find(wanted)) && this.wanted === wanted) this.offer(wanted);
  }

  offer(wanted) {
    if (!this.search) {
      this.search = document.createElement("input");
      this.search.type = "search";
      this.search.placeholder = "Search agents";
      this.search.setAttribute("aria-label", "Search agents");
      this.search.addEventListener("input", () => this.fill(this.search.value.toLowerCase()));
    }
    const fitting = this.agents.options.filter((one) => one.dataset.name.toLowerCase().includes(wanted)).slice(0, 40);
    const buttons = fitting.map((one) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.name = one.dataset.name;
      button.setAttribute("role", "menuitemradio");
      button.setAttribute("aria-checked", String(one.dataset.name === this.menu.dataset.agent));
      button.append(one.querySelector(".avatar").cloneNode(true), one.dataset.name);
      const about = document.createElement("small");
      about.textContent = one.querySelector(".soft").textContent;
      button.append(about);
      return button;
    });
    const wasFocused = document.activeElement === this.search;
    this.body.replaceChildren(...(this.agents.options.length > 8 ? [this.search] : []), ...buttons);
    if (wasFocused) this.search.focus();
  }

  choose(name) {
    this.show(name);
    this.chosen = name;
  }

  show(name) {
    this.chosen = "";
    this.menu.dataset.agent = name;
    this.name(name);
    this.menu.querySelector('[data-slot="initials"]').textContent = name.slice(0, 2).toUpperCase();
  }
}

class ModelChoice extends NamedMenu {
  constructor(menu) {
    super(menu);
    this.body.addEventListener("click", (event) => {
      const button = event.target.closest("[data-model]");
      if (!button) return;
      this.chosen = button.dataset.model;
      this.name(this.chosen);
      for (const one of this.body.querySelectorAll("button")) one.setAttribute("aria-checked", String(one === button));
    });
  }
}

// Files that go with the message: chosen, dropped or pasted, each shown until it is sent.
class Files {
  constructor(form) {
    this.list = form.querySelector("#files");
    this.chosen = [];
    const input = form.querySelector("#file");
    form.querySelector("#attach").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = "";
    });
    form.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) event.preventDefault();
      this.add([...event.clipboardData.files]);
    });
    form.addEventListener("dragover", (event) => event.preventDefault());
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
    this.list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      this.chosen.splice(Number(button.dataset.at), 1);
      this.show();
    });
  }

  add(files) {
    this.chosen.push(...files);
    this.show();
  }

  take() {
    const files = this.chosen;
    this.chosen = [];
    this.show();
    return files;
  }

  show() {
    this.list.hidden = !this.chosen.length;
    const items = this.chosen.map((file, at) => {
      const item = document.createElement("li");
      const name = document.createElement("span");
      name.className = "cut";
      name.textContent = file.name;
      const size = document.createElement("small");
      size.textContent = file.size < 1024 ? `${file.size} B` : `${Math.round(file.size / 1024).toLocaleString()} KB`;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet small";
      remove.dataset.at = at;
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.textContent = "×";
      item.append(name, size, remove);
      return item;
    });
    this.list.replaceChildren(...items);
  }
}

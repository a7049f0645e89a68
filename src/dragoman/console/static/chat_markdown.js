// Markdown as it streams: what a line is, is decided once, and what stands on the page is never made anew.
// Elements are created one by one and words are only ever set as text: no HTML is read from what models say.

import { Highlighter } from "./chat_code.js";
import { inline, node } from "./chat_inline.js";

const PART = 24; // blocks of an answer that are skipped together while nobody sees them
const ITEMS = 100; // the same for items of a list
const LINES = 100; // the same for lines of code
const WORDS = 8_000; // the same for characters of a paragraph
const SLICE = 20_000; // characters at a time: between two slices the page can answer its reader
const DEEPEST = 16; // quotes and lists within one another
const LONG = 4_000; // words of a paragraph before this many characters are not looked at again
const SHORT = 2_000;

const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|(\d{1,9})[.)])(?: +|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const MARKS = /^(?:[-*+_=#>|:\s]*|\d{1,9}[.)]?\s*|`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*|\|.*)$/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

export class Markdown {
  // `source` is all that was said, `run` that of the sources that it may cite; `slicewise` makes each later slice.
  constructor(place, run = "", slicewise = (draw) => draw()) {
    this.place = place;
    this.run = run;
    this.slicewise = slicewise;
    this.source = "";
    this.waiting = ""; // not looked at yet
    this.rest = ""; // of a line that may still become anything
    this.isBegun = false; // the line has a leaf, and what follows in it is text of that leaf
    this.containers = [];
    this.leaf = null;
    this.held = null; // a line that is the head of a table if the next one says so
    this.isOver = false;
    place.classList.add("shown");
  }

  append(text) {
    this.source += text;
    this.waiting += text;
    if (!this.timer) this.work();
  }

  // Nothing more comes: what was left open stays as it was written.
  end() {
    this.isOver = true;
    if (!this.timer) this.finish();
  }

  work() {
    this.timer = 0;
    const slice = this.waiting.slice(0, SLICE);
    this.waiting = this.waiting.slice(slice.length);
    this.read(slice);
    if (this.waiting) this.timer = setTimeout(() => this.slicewise(() => this.work()), 0);
    else if (this.isOver) this.finish();
  }

  finish() {
    if (this.rest && !this.isBegun) this.line(this.rest);
    this.release();
    this.close(0);
    this.rest = "";
  }

  read(text) {
    const lines = text.replaceAll("\r", "").replaceAll("\0", "\ufffd").split("\n");
    lines.forEach((words, at) => {
      if (at) this.endLine();
      if (words) this.words(words);
    });
    this.leaf?.show(true);
  }

  words(words) {
    if (this.isBegun) return this.leaf.add(words);
    this.rest += words;
    if (!this.isUndecided()) this.begin();
  }

  endLine() {
    if (!this.isBegun) this.line(this.rest);
    else this.leaf.endLine?.();
    if (this.leaf?.isHeading) this.closeLeaf();
    this.rest = "";
    this.isBegun = false;
  }

  // Whether what the line is depends on what comes next in it
  isUndecided() {
    const { line, depth } = this.inside(untabbed(this.rest));
    if (this.leaf?.isCode && depth === this.containers.length) return /^ {0,3}(?:`*|~*)[ \t]*$/.test(line);
    if (this.leaf?.isTable || (this.held !== null && /^[-:|\s]*$/.test(line))) return true;
    return MARKS.test(line.replace(/^(?: {0,3}> ?)+/, "").trimStart().replace(/^(?:[-*+]|\d{1,9}[.)])\s+/, ""));
  }

  begin() {
    this.line(this.rest, true);
    this.isBegun = Boolean(this.leaf) && !this.leaf.isTable;
  }

  // The line without the marks of the containers that it goes on with, and how many these are
  inside(line) {
    let depth = 0;
    for (const one of this.containers) {
      if (one.isQuote && QUOTE.test(line)) line = line.replace(QUOTE, "");
      else if (!one.isQuote && (!line.trim() || indent(line) >= one.indent)) line = line.slice(Math.min(one.indent, indent(line)));
      else break;
      depth += 1;
    }
    return { line, depth };
  }

  // `isPartial`: it goes on, and what it is cannot change any more.
  line(written, isPartial = false) {
    const all = untabbed(written);
    let { line, depth } = this.inside(all);
    if (this.leaf?.isCode) {
      if (depth === this.containers.length) {
        if (this.leaf.isClosedBy(line)) return this.closeLeaf();
        return this.leaf.add(line.slice(Math.min(this.leaf.indent, indent(line))), !isPartial);
      }
      this.closeLeaf();
    }
    if (!line.trim()) {
      this.release();
      this.closeLeaf();
      return;
    }
    if (this.leaf?.isText && depth < this.containers.length && !starts(line)) {
      return this.leaf.add(`\n${line.trimStart()}`); // words that go on, although their marks do not
    }
    if (depth < this.containers.length) {
      this.release();
      this.close(depth);
    }
    line = this.enter(line);
    this.block(line);
  }

  // New quotes and list items that the line begins
  enter(line) {
    while (this.containers.length < DEEPEST) {
      if (QUOTE.test(line)) {
        this.release();
        this.closeLeaf();
        line = line.replace(QUOTE, "");
        this.open({ isQuote: true, node: node("blockquote") });
        continue;
      }
      const item = RULE.test(line) ? null : ITEM.exec(line);
      const goesOn = this.leaf?.isText && item && (!line.slice(item[0].length).trim() || (item[3] && item[3] !== "1" && !this.list()));
      if (!item || goesOn) return line;
      this.release();
      this.closeLeaf();
      this.item(item);
      line = line.slice(item[0].length);
    }
    return line;
  }

  item([, space, mark, number]) {
    const kind = number === undefined ? "ul" : "ol";
    let list = this.list();
    if (list?.localName !== kind || list.dataset.mark !== mark.at(-1)) {
      list = node(kind);
      list.dataset.mark = mark.at(-1);
      if (number && Number(number) !== 1) list.start = Number(number);
      this.put(list);
    } else if (!this.containers.length && list.childElementCount >= ITEMS) {
      const next = node(kind);
      next.dataset.mark = list.dataset.mark;
      if (kind === "ol") next.start = list.start + list.childElementCount;
      next.classList.toggle("wide", next.start > 900);
      this.goOn(next);
      list = next;
    }
    const item = node("li");
    list.append(item);
    this.containers.push({ indent: space.length + 2, node: item });
  }

  // The list that a new item here would belong to
  list() {
    const last = this.home().lastElementChild;
    return last?.matches?.("ul, ol") ? last : null;
  }

  open(container) {
    this.put(container.node);
    this.containers.push(container);
  }

  block(line) {
    if (this.held !== null) {
      const head = this.held;
      this.held = null;
      if (isTable(head, line)) return this.table(head, line);
      this.text(head);
    }
    if (this.leaf?.isTable) {
      if (line.includes("|")) return this.leaf.row(line);
      this.closeLeaf();
    }
    const fence = FENCE.exec(line);
    if (fence) {
      this.closeLeaf();
      this.leaf = new Code(fence, indent(line));
      return this.put(this.leaf.node);
    }
    const heading = HEADING.exec(line);
    if (heading) {
      this.closeLeaf();
      this.leaf = new Words(node(`h${Math.min(heading[1].length + 2, 6)}`), this.run, true);
      this.put(this.leaf.node);
      return this.leaf.add(line.slice(heading[0].length));
    }
    if (RULE.test(line)) {
      this.closeLeaf();
      return this.put(node("hr"));
    }
    if (!this.leaf && /^ {0,3}\|/.test(line)) {
      this.held = line;
      return;
    }
    if (this.leaf?.isText && isTable(this.leaf.text, line)) {
      const head = this.leaf.text;
      this.leaf.node.remove();
      this.leaf = null;
      return this.table(head, line);
    }
    this.text(line);
  }

  text(line) {
    const isLong = this.leaf?.isText && !this.containers.length && this.leaf.text.length > WORDS;
    if (this.leaf && !isLong) return this.leaf.add(`\n${line.trimStart()}`);
    this.closeLeaf();
    this.leaf = new Words(node("p"), this.run);
    if (isLong) this.goOn(this.leaf.node);
    else this.put(this.leaf.node);
    this.leaf.add(line.trimStart());
  }

  table(head, delimiters) {
    this.leaf = new Table(head, delimiters, this.run);
    this.put(this.leaf.node);
  }

  // A line that turned out to be no head of a table
  release() {
    if (this.held === null) return;
    const words = this.held;
    this.held = null;
    this.text(words);
  }

  home() {
    const last = this.containers.at(-1)?.node;
    if (last) return last;
    let part = this.place.lastElementChild;
    if (!part || (part.childElementCount >= PART && !part.lastElementChild.matches("ul, ol"))) {
      part = node("div", "part");
      this.place.append(part);
    }
    return part;
  }

  put(block) {
    this.home().append(block);
  }

  // What is one block to its reader goes on in a part of its own, which is skipped while nobody sees it.
  goOn(block) {
    this.place.lastElementChild.classList.add("full");
    const part = node("div", "part goes-on");
    part.append(block);
    this.place.append(part);
  }

  closeLeaf() {
    this.leaf?.close();
    this.leaf = null;
  }

  close(depth) {
    this.closeLeaf();
    this.containers.length = depth;
  }
}

const indent = (line) => line.length - line.trimStart().length;
const untabbed = (line) => (line.includes("\t") ? line.replace(/^[ \t]+/, (space) => space.replaceAll("\t", "    ")) : line);
const starts = (line) => QUOTE.test(line) || ITEM.test(line) || FENCE.test(line) || HEADING.test(line) || RULE.test(line);
const isTable = (head, line) =>
  line.length < 1000 && DELIMITERS.test(line) && head.includes("|") && !head.includes("\n") && cells(head).length === cells(line).length;

const cells = (row) => {
  const inner = row.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
};

// A paragraph or a heading. Only its last words are looked at again when more come.
class Words {
  constructor(place, run, isHeading = false) {
    this.node = place;
    this.run = run;
    this.isHeading = isHeading;
    this.isText = !isHeading;
    this.text = "";
    this.settled = 0; // characters that are shown for good
    this.fixed = 0; // nodes of these
    this.isShown = true;
  }

  add(words) {
    this.text += words;
    this.isShown = false;
    while (this.text.length - this.settled > LONG) this.settle();
  }

  settle() {
    const space = this.text.slice(this.settled + SHORT, this.settled + LONG).search(/\s/);
    const end = this.settled + (space < 0 ? LONG : SHORT + space);
    this.draw(this.text.slice(this.settled, end), false);
    this.settled = end;
    this.fixed = this.node.childNodes.length;
  }

  show(isOpen) {
    if (this.isShown) return;
    this.isShown = true;
    this.draw(this.text.slice(this.settled), isOpen);
  }

  draw(text, isOpen) {
    while (this.node.childNodes.length > this.fixed) this.node.lastChild.remove();
    this.node.append(...inline(text.trimEnd(), { run: this.run, isOpen }));
  }

  close() {
    if (this.isHeading) this.text = this.text.replace(/[ \t]+#+[ \t]*$/, "");
    this.isShown = false;
    this.show(false);
  }
}

class Table {
  constructor(head, delimiters, run) {
    this.isTable = true;
    this.run = run;
    this.ends = cells(delimiters).map((cell) => cell.endsWith(":"));
    this.node = node("div", "md-table");
    this.node.tabIndex = 0;
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", "Table");
    const table = node("table");
    this.body = node("tbody");
    const top = node("thead");
    top.append(this.made(cells(head), "th"));
    table.append(top, this.body);
    this.node.append(table);
  }

  row(line) {
    this.body.append(this.made(cells(line), "td"));
  }

  made(texts, kind) {
    const row = node("tr");
    this.ends.forEach((isEnd, at) => {
      const cell = node(kind, isEnd ? "num" : "");
      const text = texts[at] ?? "";
      cell.append(...(text.length > LONG ? [text] : inline(text, { run: this.run })));
      row.append(cell);
    });
    return row;
  }

  add() {}
  show() {}
  close() {}
}

// A block of code: each line is coloured once it is complete.
class Code {
  constructor([, mark, info], space) {
    this.isCode = true;
    this.mark = mark;
    this.indent = space;
    this.language = info.trim().split(/[\s{]/)[0];
    this.node = node("div", "code-block");
    const head = node("div", "code-head");
    const name = node("span");
    name.textContent = this.language || "text";
    const copy = node("button", "quiet small");
    copy.type = "button";
    copy.dataset.copyCode = "";
    copy.textContent = "Copy";
    head.append(name, copy);
    const frame = node("pre");
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", `Code, ${name.textContent}`);
    this.place = node("code");
    frame.append(this.place);
    this.node.append(head, frame);
    this.highlighter = new Highlighter(this.language);
    this.count = 0;
    this.open = null; // the line that is not complete
    this.text = "";
  }

  isClosedBy(line) {
    const words = line.trim();
    return indent(line) < 4 && words.length >= this.mark.length && words === this.mark[0].repeat(words.length);
  }

  add(words, isWhole = false) {
    this.text += words;
    if (isWhole) this.endLine();
  }

  show() {
    if (!this.text) return;
    if (!this.open) this.open = this.chunk().appendChild(document.createTextNode(""));
    this.open.data = this.text;
  }

  endLine() {
    this.open?.remove();
    this.open = null;
    this.chunk().append(...this.highlighter.line(this.text), "\n");
    this.count += 1;
    this.text = "";
  }

  chunk() {
    if (this.count % LINES === 0 && this.place.childElementCount * LINES <= this.count) this.place.append(node("span", "code-part"));
    return this.place.lastElementChild;
  }

  close() {
    if (this.text) this.endLine();
  }
}

// What stands within one block of Markdown: emphasis, code, links, citations. Returns nodes; reads no HTML.

export const node = (name, look = "") => {
  const made = document.createElement(name);
  if (look) made.className = look;
  return made;
};

const SPECIAL = /[\\`*_~[\]!<&\n]/g;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const ENTITY = /^&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp|hellip|mdash|ndash|copy));/;
const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", hellip: "…", mdash: "—", ndash: "–", copy: "©" };
const CITED = /^\[(c\d+(?:\s*[,;]\s*c\d+)*)\](?:\([^()\s]*\))?/i;
const POINTED = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i;
const TARGET = /^\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/;
const DEEPEST = 8; // links and emphasis within one another

// `isOpen`: more may come, so what is not closed yet is shown as if it were.
export const inline = (text, { run = "", isOpen = false, depth = 0 } = {}) => {
  const parts = new Parts();
  const again = (words, open) => inline(words, { run, isOpen: open, depth: depth + 1 });
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const found = SPECIAL.exec(text)?.index ?? text.length;
    parts.text(text.slice(at, found));
    at = found;
    if (at === text.length) break;
    const rest = text.slice(at, at + 2200);
    const character = text[at];
    let match = null;
    if (character === "\n") {
      parts.node(node("br"));
      at += 1;
    } else if (character === "\\" && at + 1 < text.length && PUNCTUATION.test(text[at + 1])) {
      parts.text(text[at + 1]);
      at += 2;
    } else if (character === "`") {
      at = code(parts, text, at, isOpen);
    } else if (character === "&" && (match = ENTITY.exec(rest))) {
      parts.text(NAMED[match[3]] ?? letter(match[1] ? Number(match[1]) : parseInt(match[2], 16)));
      at += match[0].length;
    } else if (character === "<" && (match = POINTED.exec(rest))) {
      parts.node(link(match[1], [match[1]]));
      at += match[0].length;
    } else if (character === "[" && run && (match = CITED.exec(rest))) {
      for (const id of match[1].split(/[,;]/)) parts.node(citation(run, id.trim().toLowerCase()));
      at += match[0].length;
    } else if (depth < DEEPEST && (character === "[" || (character === "!" && text[at + 1] === "["))) {
      at = bracket(parts, text, at, isOpen, again);
    } else if ("*_~".includes(character)) {
      at = parts.delimiter(text, at);
    } else {
      parts.text(character);
      at += 1;
    }
  }
  return parts.done(isOpen);
};

const letter = (code) => (code && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : "\ufffd");

// Only addresses of the web and of mail become links; whatever else is written stays text.
const link = (address, words) => {
  const made = node("a");
  made.href = address;
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  made.append(...words);
  return made;
};

const isSafe = (address) => /^(?:https?:\/\/|mailto:)/i.test(address);

const citation = (run, id) => {
  const mark = node("sup");
  const to = node("a");
  to.href = `#source-${run}-${id}`;
  to.textContent = id.slice(1);
  to.setAttribute("aria-label", `Source ${id.slice(1)}`);
  mark.append(to);
  return mark;
};

const code = (parts, text, at, isOpen) => {
  let end = at;
  while (text[end] === "`") end += 1;
  const mark = text.slice(at, end);
  for (let close = text.indexOf(mark, end); close >= 0; close = text.indexOf(mark, close + 1)) {
    let after = close;
    while (text[after] === "`") after += 1;
    if (after - close === mark.length) {
      parts.node(coded(text.slice(end, close)));
      return after;
    }
    close = after - 1;
  }
  if (isOpen && end < text.length) {
    parts.node(coded(text.slice(end)));
    return text.length;
  }
  parts.text(isOpen ? "" : mark);
  return end;
};

const coded = (words) => {
  const made = node("code");
  const line = words.replaceAll("\n", " ");
  made.textContent = /^ .*[^ ].* $|^ [^ ]+ $/.test(line) ? line.slice(1, -1) : line;
  return made;
};

const bracket = (parts, text, at, isOpen, again) => {
  const isImage = text[at] === "!";
  const begin = at + (isImage ? 2 : 1);
  const end = closing(text, begin);
  if (end < 0) {
    if (isOpen && /^\[c?\d*$/.test(text.slice(at))) return text.length; // perhaps a citation
    if (isOpen && text.length - begin < 300) {
      parts.nodes(again(text.slice(begin), true)); // a link whose address is still to come
      return text.length;
    }
    parts.text(text.slice(at, begin));
    return begin;
  }
  const label = text.slice(begin, end);
  const rest = text.slice(end + 1, end + 2200);
  const target = TARGET.exec(rest);
  if (target) {
    const address = (target[1] ?? target[2]).replace(/\\(.)/g, "$1");
    if (isSafe(address)) {
      // A picture from elsewhere would tell that place who reads this: its words are shown instead.
      if (isImage) parts.text(label);
      else parts.node(link(address, again(label, false)));
      return end + 1 + target[0].length;
    }
  } else if (isOpen && rest.startsWith("(") && !rest.includes(")") && !rest.includes("\n")) {
    parts.nodes(again(label, true));
    return text.length;
  }
  parts.text(text.slice(at, begin));
  return begin;
};

const closing = (text, at) => {
  let depth = 0;
  for (const limit = Math.min(text.length, at + 2000); at < limit; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[" && (depth += 1) > DEEPEST) return -1;
    else if (text[at] === "]" && depth-- === 0) return at;
  }
  return -1;
};

// Nodes in order, with marks of emphasis between them that find each other at the end.
class Parts {
  constructor() {
    this.items = []; // { node } or { mark, count, opens, closes }
  }

  text(words) {
    if (!words) return;
    const last = this.items.at(-1);
    if (last?.node?.nodeType === Node.TEXT_NODE) last.node.data += words;
    else this.items.push({ node: document.createTextNode(words) });
  }

  node(made) {
    this.items.push({ node: made });
  }

  nodes(made) {
    for (const one of made) this.node(one);
  }

  delimiter(text, at) {
    const mark = text[at];
    let end = at;
    while (text[end] === mark) end += 1;
    const before = text[at - 1] ?? " ";
    const after = text[end] ?? " ";
    const left = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const right = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    const opens = mark === "_" ? left && (!right || PUNCTUATION.test(before)) : left;
    const closes = mark === "_" ? right && (!left || PUNCTUATION.test(after)) : right;
    const isMark = mark !== "~" || end - at === 2;
    if (isMark && (opens || closes || end === text.length)) {
      this.items.push({ mark, count: end - at, opens, closes, isLast: end === text.length });
    } else this.text(text.slice(at, end));
    return end;
  }

  done(isOpen) {
    // The mark at the very end is half of something that is still being written.
    if (isOpen && this.items.at(-1)?.isLast) this.items.pop();
    const waiting = []; // places of marks that may open
    for (let at = 0; at < this.items.length; at += 1) {
      const item = this.items[at];
      while (item.mark && item.closes && item.count) {
        const found = waiting.findLastIndex((place) => this.fits(this.items[place], item));
        if (found < 0) break;
        const place = waiting[found];
        at = this.wrap(place, at, item);
        waiting.length = this.items[place].count ? found + 1 : found;
      }
      if (item.mark && item.opens && item.count) waiting.push(at);
    }
    if (isOpen && waiting.length) this.wrapRest(waiting);
    return this.items.flatMap(({ node: made, mark, count }) => made ?? (count ? document.createTextNode(mark.repeat(count)) : []));
  }

  fits(opener, closer) {
    if (opener.mark !== closer.mark || !opener.count) return false;
    const isBoth = opener.closes || closer.opens;
    return !isBoth || (opener.count + closer.count) % 3 !== 0 || (opener.count % 3 === 0 && closer.count % 3 === 0);
  }

  // What is between two marks becomes one node. Returns where the closing mark is then.
  wrap(from, to, closer) {
    const opener = this.items[from];
    const size = closer.mark === "~" || (opener.count > 1 && closer.count > 1) ? 2 : 1;
    const made = node(closer.mark === "~" ? "del" : size === 2 ? "strong" : "em");
    const within = this.items.splice(from + 1, to - from - 1, { node: made });
    for (const { node: one, mark, count } of within) made.append(one ?? mark.repeat(count));
    opener.count -= size;
    closer.count -= size;
    return from + 2;
  }

  wrapRest(waiting) {
    const place = waiting.findLast((at) => at < this.items.length - 1 && this.items[at].count);
    if (place === undefined || this.items[place].count > 3) return;
    const opener = this.items[place];
    this.items.push({ mark: opener.mark, count: opener.count });
    while (opener.count > 0) this.wrap(place, this.items.length - 1, this.items.at(-1));
    this.items.pop();
  }
}

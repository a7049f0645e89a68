// Colours for code, line by line: keywords, texts, numbers, comments and what is called. Knows no grammar.

const C_WORDS = "break case catch class const continue default do else enum extends false final finally for if implements import in instanceof interface new null package private protected public return static super switch this throw true try void while";
const WORDS = {
  python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match case None nonlocal not or pass raise return True try while with yield",
  javascript: `${C_WORDS} async await debugger delete export from function get let of set typeof undefined var yield type as readonly declare namespace keyof`,
  java: `${C_WORDS} abstract boolean byte char double float int long short synchronized throws var record sealed string bool using namespace override virtual fun val when object data`,
  c: `${C_WORDS} auto char double float int long short signed unsigned struct union typedef sizeof template typename namespace using virtual override nullptr bool include define`,
  go: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var",
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  ruby: "begin break case class def do else elsif end ensure false for if in module next nil not or and redo rescue return self super then true unless until when while yield require",
  php: `${C_WORDS} echo function foreach as namespace use array fn match`,
  bash: "if then else elif fi for in do done while until case esac function return export local set unset echo cd exit source sudo",
  sql: "select from where and or not in is null insert into values update set delete create table index view drop alter add primary key foreign references join left right inner outer full on group by order having limit offset union all distinct as case when then else end between like exists with returning count sum avg min max",
  json: "true false null",
  yaml: "true false null yes no on off",
  css: "important media import supports",
};
const SAME = {
  py: "python", js: "javascript", ts: "javascript", jsx: "javascript", tsx: "javascript", typescript: "javascript", mjs: "javascript",
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", dockerfile: "bash", makefile: "bash", kotlin: "java", kt: "java", cs: "java", csharp: "java", "c#": "java", swift: "java", scala: "java",
  cpp: "c", "c++": "c", h: "c", golang: "go", rs: "rust", rb: "ruby", yml: "yaml", toml: "yaml", ini: "yaml", jsonc: "json", json5: "json", postgres: "sql", postgresql: "sql", sqlite: "sql", mysql: "sql", scss: "css",
};
const HASH = ["python", "bash", "ruby", "yaml", "php"];
const SLASH = ["javascript", "java", "c", "go", "rust", "php", "json", "css"];
const LONGEST = 2_000; // characters of a line that are coloured; what is longer is shown as it is

export class Highlighter {
  constructor(language) {
    const name = language.toLowerCase();
    this.language = SAME[name] ?? name;
    this.isDiff = this.language === "diff" || this.language === "patch";
    const words = WORDS[this.language];
    this.words = words && new Set(words.split(" "));
    this.until = null; // what ends a comment or text that goes over several lines
    if (this.words) this.pattern = pattern(this.language);
  }

  line(text) {
    if (this.isDiff) return [{ "+": piece("s", text), "-": piece("e", text), "@": piece("m", text) }[text[0]] ?? text];
    if (!this.words || text.length > LONGEST) return [text];
    const parts = [];
    let at = 0;
    if (this.until) {
      const end = text.indexOf(this.until.mark);
      const stop = end < 0 ? text.length : end + this.until.mark.length;
      parts.push(piece(this.until.look, text.slice(0, stop)));
      if (end < 0) return parts;
      this.until = null;
      at = stop;
    }
    this.pattern.lastIndex = at;
    for (let match; (match = this.pattern.exec(text)); ) {
      if (match.index > at) parts.push(text.slice(at, match.index));
      at = this.pattern.lastIndex;
      const { comment, long, block, string, number, word } = match.groups;
      if (comment) parts.push(piece("m", comment));
      else if (long || block) at = this.over(parts, text, match);
      else if (string) parts.push(piece(this.language === "json" && /^\s*:/.test(text.slice(at)) ? "f" : "s", string));
      else if (number) parts.push(piece("n", number));
      else parts.push(this.named(word, text.slice(at)));
      this.pattern.lastIndex = at;
    }
    if (at < text.length) parts.push(text.slice(at));
    return parts;
  }

  // A text or comment that may end in a later line
  over(parts, text, { index, groups: { long, block } }) {
    const mark = long ?? "*/";
    const look = long ? "s" : "m";
    const end = text.indexOf(mark, index + (long ?? block).length);
    const stop = end < 0 ? text.length : end + mark.length;
    parts.push(piece(look, text.slice(index, stop)));
    if (end < 0) this.until = { mark, look };
    return stop;
  }

  named(word, after) {
    const known = this.language === "sql" ? word.toLowerCase() : word;
    if (this.words.has(known)) return piece("k", word);
    if (/^\s*\(/.test(after) && this.language !== "sql") return piece("f", word);
    if (this.language === "yaml" && /^\s*[:=]/.test(after)) return piece("f", word);
    return word;
  }
}

const pattern = (language) => {
  const comments = [];
  if (HASH.includes(language)) comments.push("(?<![\\w$&])#.*");
  if (SLASH.includes(language)) comments.push("//.*");
  if (language === "sql") comments.push("--.*");
  const long = { python: '"""|\'\'\'', javascript: "`", go: "`" }[language] ?? "(?!)";
  const block = SLASH.includes(language) || language === "sql" ? "/\\*" : "(?!)";
  const quotes = language === "rust" ? '"(?:\\\\.|[^"\\\\])*"?' : '"(?:\\\\.|[^"\\\\])*"?|\'(?:\\\\.|[^\'\\\\])*\'?';
  const word = language === "yaml" ? "[A-Za-z_][\\w.-]*" : "[A-Za-z_$][\\w$]*";
  return new RegExp(
    `(?<comment>${comments.join("|") || "(?!)"})|(?<long>${long})|(?<block>${block})|(?<string>${quotes})|(?<number>\\b\\d[\\w.]*)|(?<word>${word})`,
    "g",
  );
};

const piece = (look, text) => {
  const made = document.createElement("span");
  made.className = look;
  made.textContent = text;
  return made;
};

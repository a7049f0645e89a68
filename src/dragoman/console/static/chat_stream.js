// The events of a thread, in order, each once: a stream that breaks is taken up after the last one heard.

const SILENT = 25_000; // the server says something every ten seconds
const HIDDEN = 1_000; // a tab that nobody sees gives its connection back: browsers have six
const LONGEST_WAIT = 8_000;

export const follow = (address, position, handle, showState) => {
  let current = null;
  let timer = 0;
  let wait = 500;
  let handled = Promise.resolve();

  const hear = (frame) => {
    const lines = frame.split("\n");
    const id = lines.find((line) => line.startsWith("id: "));
    const data = lines.find((line) => line.startsWith("data: "));
    if (!data) return;
    const event = JSON.parse(data.slice(6));
    position = id.slice(4);
    handled = handled.then(() => handle(event));
  };

  const read = async (response, control) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const watchdog = setTimeout(() => control.abort(), SILENT);
      const { value, done } = await reader.read();
      clearTimeout(watchdog);
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      frames.forEach(hear);
    }
  };

  const connect = async () => {
    clearTimeout(timer);
    current?.abort();
    const control = (current = new AbortController());
    showState("connecting");
    try {
      const headers = { Accept: "text/event-stream" };
      const response = await fetch(`${address}?after=${position}`, { headers, signal: control.signal });
      if (response.status === 401) return location.assign(`/sign-in?next=${location.pathname}`);
      if (response.status === 404) return showState("gone");
      if (response.ok) {
        showState("live");
        wait = 500;
        await read(response, control);
      }
    } catch {
      // A connection that breaks is what this is made for.
    }
    if (control !== current) return;
    showState("lost");
    timer = setTimeout(connect, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  };

  const leave = () => {
    clearTimeout(timer);
    const control = current;
    current = null;
    control?.abort();
  };

  addEventListener("online", connect);
  addEventListener("offline", () => {
    leave();
    showState("lost");
  });
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(leave, HIDDEN);
    else if (!current) connect();
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => event.persisted && connect());
  if (!document.hidden) connect(); // one that was opened behind another begins when it is seen
};

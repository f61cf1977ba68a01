// Keeps the page of an experiment up to date: the server says when, and only parts that differ are replaced.
"use strict";
(() => {
  const live = document.getElementById("live");
  const address = live.dataset.address;
  let isBusy = false, isStale = false;

  const replace = (old, now) => {
    if (!now || old.innerHTML === now.innerHTML) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const open = [...old.querySelectorAll("details[open]")].map((one) => one.id);
    old.replaceChildren(...now.childNodes);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
  };

  const refresh = async () => {
    if (isBusy || document.hidden) { isStale = true; return; }
    isBusy = true;
    isStale = false;
    try {
      const answer = await fetch(`${address}?part=live`);
      if (answer.redirected) { location.reload(); return; }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const old of live.querySelectorAll("[data-part]")) {
          replace(old, page.querySelector(`[data-part="${old.dataset.part}"]`));
        }
        const state = page.querySelector(".now");
        if (state) live.querySelector(".now").className = state.className;
      }
      await window.orthobanditCharts.load(address);
    } catch { isStale = true; /* the server is away; the stream says when it is back */ }
    isBusy = false;
  };

  // Streams end now and then, and begin again at once. One that does not is worth a word.
  const away = document.getElementById("away");
  let known = live.dataset.version, stream = null, timer = 0;

  const lost = () => {
    if (!timer) {
      const since = new Date().toLocaleTimeString();
      timer = setTimeout(() => {
        document.getElementById("away-since").textContent = since;
        away.hidden = false;
      }, 5000);
    }
    // Browsers give up after an answer that is no stream, such as that of a proxy without its server.
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { connect(); refresh(); }, 3000);
  };

  const connect = () => {
    stream = new EventSource(`${address}/events?known=${encodeURIComponent(known)}`);
    stream.addEventListener("changed", (event) => { known = event.data; refresh(); });
    stream.addEventListener("open", () => { clearTimeout(timer); timer = 0; away.hidden = true; });
    stream.addEventListener("error", lost);
  };

  connect();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) refresh(); });
  addEventListener("pagehide", () => stream.close());
  window.orthobanditCharts.load(address);
})();

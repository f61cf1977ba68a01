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

  const stream = new EventSource(`${address}/events?known=${encodeURIComponent(live.dataset.version)}`);
  stream.addEventListener("changed", refresh);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) refresh(); });
  addEventListener("pagehide", () => stream.close());
  window.orthobanditCharts.load(address);
})();

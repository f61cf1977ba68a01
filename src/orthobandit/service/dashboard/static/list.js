// The list is loaded again every few seconds while somebody looks at it.
"use strict";
(() => {
  const pause = 5000;
  const refresh = async () => {
    const list = document.getElementById("list");
    if (list && !document.hidden && !list.contains(document.activeElement)) {
      try {
        const answer = await fetch(location.href);
        if (answer.ok && !answer.redirected) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          const found = page.getElementById("list");
          if (found && found.innerHTML !== list.innerHTML) list.replaceChildren(...found.childNodes);
        }
      } catch { /* the server is away; the next time may do */ }
    }
    setTimeout(refresh, pause);
  };
  setTimeout(refresh, pause);
})();

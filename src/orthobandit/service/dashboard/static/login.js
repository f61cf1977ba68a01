// A link as `orthobandit serve` prints it carries the token behind "#", which browsers do not send.
"use strict";
(() => {
  const enter = () => {
    const given = decodeURIComponent(location.hash.slice(1));
    if (!given.startsWith("ob_")) return;
    history.replaceState(null, "", location.pathname + location.search);
    document.getElementById("token").value = given;
    document.getElementById("login").requestSubmit();
  };
  addEventListener("hashchange", enter);  // the link was opened where the page was open already
  enter();
})();

"use strict";
// Keys and focus. Everything on the page works without this file.
(() => {
  // A key or button pressed twice by mistake must not decide the draft that has just come up.
  const PAUSE_MS = 500;
  let shownAt = -PAUSE_MS;
  let busy = false;

  const target = (key) => document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  const switchOfKeys = () => document.getElementById("use-keys");

  function typing(element) {
    if (!element) return false;
    if (element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName)) return true;
    return element.tagName === "INPUT" && element.type !== "checkbox";
  }

  function step(by) {
    const entries = [...document.querySelectorAll("#page a.entry")];
    if (entries.length === 0) return;
    const at = entries.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : entries.length - 1) : at + by;
    entries[Math.min(Math.max(next, 0), entries.length - 1)].focus();
  }

  const actions = {
    j: () => (target("j") ? target("j").click() : step(1)),
    k: () => (target("k") ? target("k").click() : step(-1)),
    a: () => target("a")?.click(),
    r: () => target("r")?.click(),
    e: () => {
      const details = document.getElementById("edit");
      if (!details) return;
      details.open = true;
      document.getElementById("text").focus();
    },
    "/": () => target("/")?.focus(),
    "?": () => {
      const keys = document.getElementById("keys");
      keys?.focus();
      keys?.scrollIntoView({ block: "nearest" });
    },
  };

  const tooSoon = () => busy || performance.now() - shownAt < PAUSE_MS;
  document.addEventListener(
    "click",
    (event) => {
      if (!event.target.closest?.('[name="decision"]') || !tooSoon()) return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && typing(event.target)) {
      event.target.blur();
      return;
    }
    const usable = switchOfKeys()?.checked && !event.repeat && !busy && !typing(event.target);
    const action = usable && Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  });

  document.addEventListener("htmx:beforeRequest", () => {
    busy = true;
    document.getElementById("page")?.setAttribute("aria-busy", "true");
  });
  document.addEventListener("htmx:afterRequest", () => {
    busy = false;
    document.getElementById("page")?.removeAttribute("aria-busy");
  });
  document.addEventListener("htmx:beforeSwap", () => {
    shownAt = performance.now();
  });
  // Where the page was exchanged, its heading is where reading goes on.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.id !== "page") return;
    shownAt = performance.now();
    document.querySelector("#page h1")?.focus({ preventScroll: true });
  });

  document.addEventListener("DOMContentLoaded", () => {
    const keys = document.getElementById("keys");
    if (!keys) return;
    keys.hidden = false;
    const chosen = switchOfKeys();
    try {
      chosen.checked = localStorage.getItem("review-keys") !== "off";
    } catch {
      return; // a browser that keeps nothing
    }
    chosen.addEventListener("change", () => localStorage.setItem("review-keys", chosen.checked ? "on" : "off"));
  });
})();

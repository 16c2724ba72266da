// Live parts, their pause, questions before what cannot be undone, selection, and the theme.
// Everything can be read without it.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Theme: light, dark, or as the system has it. In a cookie, so that the server sends the page in it.

const themes = ["", "light", "dark"];
const theme = $("#theme");
function showTheme() {
  const now = document.documentElement.dataset.theme ?? "";
  theme.textContent = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" }[now];
}
theme.hidden = false;
showTheme();
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme ?? "") + 1) % themes.length];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  const age = next ? 31536000 : 0;
  document.cookie = `penstock_theme=${next}; path=/; max-age=${age}; samesite=strict`;
  showTheme();
  document.dispatchEvent(new CustomEvent("penstock:shown"));
});

// On a phone the screens stand in a row that is wider than it: the one that is open is in sight.
// Not by scrollIntoView: browsers let the Tab key go on from there, and skip the link to the content.

const here = $("nav a[aria-current]");
if (here) {
  const row = here.closest("nav");
  const middle = (one) => one.getBoundingClientRect().left + one.getBoundingClientRect().width / 2;
  row.scrollLeft += middle(here) - middle(row);
}

// Times: the title tells them in the reader's own zone.

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
function tellTimes() {
  for (const one of $$("time[datetime]")) one.title = local.format(new Date(one.dateTime));
}

// Live: an update is held back while the page is paused, while a text of the live part is selected
// and while a question is open, and shown afterwards.

const part = $("#live");
const state = $("#live-state");
const pause = $("#live-pause");
let paused = false;
let held = null;
let connected = false;

function selecting() {
  const selection = document.getSelection();
  return !selection.isCollapsed && part.contains(selection.anchorNode);
}
function showState() {
  if (!state) return;
  const now = paused ? "paused" : connected ? "live" : "away";
  const said = { paused: held === null ? "paused" : "paused, updates waiting", live: "live", away: "reconnecting" };
  if (state.dataset.state !== now) state.dataset.state = now;
  if (state.textContent !== said[now]) state.textContent = said[now];
}
async function release() {
  if (held === null || paused || selecting() || $("#ask").open) return;
  const text = held;
  held = null;
  await htmx.swap({ sourceElement: part, target: part, swap: "innerMorph", text });
  showState();
}
if (part) {
  part.addEventListener("htmx:sse:before:message", (event) => {
    if (event.detail.message.event) return;
    connected = true;
    if (paused || selecting() || $("#ask").open) {
      held = event.detail.message.data;
      event.detail.cancelled = true;
    } else {
      held = null;
    }
    showState();
  });
  part.addEventListener("htmx:sse:after:connection", () => { connected = true; showState(); });
  part.addEventListener("htmx:sse:error", (event) => {
    connected = false;
    showState();
    if (event.detail.status === 401) location.reload(); // to the page that asks for a key
  });
  part.addEventListener("bye", () => { connected = false; showState(); });
  part.addEventListener("htmx:sse:before:connection", (event) => {
    if (event.detail.connection.attempt > 0) { connected = false; showState(); }
  });
  // The first connection is made once, unless it is asked for again.
  for (const failed of ["htmx:response:error", "htmx:error"]) {
    part.addEventListener(failed, () => {
      connected = false;
      showState();
      setTimeout(() => htmx.trigger(part, "connect"), 3000);
    });
  }
  document.addEventListener("selectionchange", release);
  $("#ask").addEventListener("close", release);
}
if (pause) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    showState();
    release();
  });
}
document.addEventListener("htmx:after:swap", () => document.dispatchEvent(new CustomEvent("penstock:shown")));
document.addEventListener("penstock:shown", tellTimes);

// Questions: what a form with data-confirm would have sent is sent once the answer is yes. It is
// noted when the question is asked: until the answer, news may take the form away or reuse it.

const dialog = $("#ask");
let asked = null;
document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  const ask = button?.dataset.confirm ?? form.dataset.confirm;
  if (!ask) return;
  event.preventDefault();
  const ticked = $$("[data-pick]:checked", form).length;
  $("#ask-what").textContent = ask.replace("{ticked}", ticked.toLocaleString("en"));
  const fields = [...new FormData(form), ["confirmed", "yes"]];
  if (button?.name) fields.push([button.name, button.value]);
  asked = { address: form.getAttribute("action"), fields };
  dialog.returnValue = "no";
  dialog.showModal();
});
dialog.addEventListener("close", () => {
  if (dialog.open || dialog.returnValue !== "yes") return; // open: it was asked again meanwhile
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action: asked.address, hidden: true });
  for (const [name, value] of asked.fields) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    form.append(field);
  }
  document.body.append(form);
  form.submit();
});

// Selection: a box that ticks all, and how many are ticked.

function countTicked() {
  const boxes = $$("[data-pick]");
  const ticked = boxes.filter((box) => box.checked).length;
  for (const one of $$("[data-ticked]")) one.textContent = ticked.toLocaleString("en");
  for (const one of $$("[data-needs-ticked]")) one.disabled = ticked === 0;
  const all = $("[data-pick-all]");
  if (all) {
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  }
}
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) {
    for (const box of $$("[data-pick]")) box.checked = event.target.checked;
  }
  if (event.target.matches("[data-pick], [data-pick-all]")) countTicked();
});
document.addEventListener("penstock:shown", countTicked);

document.dispatchEvent(new CustomEvent("penstock:shown"));

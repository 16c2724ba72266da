// Files dropped or chosen are sent one by one, each with its progress and with what came of it.
// Without it the form sends them all at once.
"use strict";

(() => {
  const form = document.querySelector("#upload");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const list = document.querySelector("#uploads");
  const most = Number(form.dataset.most);
  const waiting = [];
  const AT_ONCE = 3;
  let sending = 0;
  document.querySelector("#drop-hint").hidden = false;

  // As the server shows names: what would be obeyed or not be seen is written out.
  const visible = (name) => name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);

  function put(element, name, more = {}) {
    const made = Object.assign(document.createElement(name), more);
    element.append(made);
    return made;
  }
  function begin(files) {
    for (const file of files) {
      const row = put(list, "li");
      put(row, "bdi", { textContent: visible(file.name) });
      const bar = put(row, "progress", { max: 1, value: 0, ariaLabel: `Upload of ${visible(file.name)}` });
      const upload = { file, bar, said: put(row, "span", { textContent: "waiting" }), collection: form.collection.value };
      if (file.size > most) failed(upload, `larger than ${form.dataset.said}`, false);
      else waiting.push(upload);
    }
    next();
  }
  function next() {
    while (sending < AT_ONCE && waiting.length) send(waiting.shift());
  }
  function send(upload) {
    const request = new XMLHttpRequest();
    const body = new FormData();
    body.append("collection", upload.collection);
    body.append("file", upload.file);
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      upload.bar.value = event.total ? event.loaded / event.total : 0;
      upload.said.textContent = `${Math.round(100 * upload.bar.value)} %`;
    });
    request.addEventListener("load", () => ended(upload, request));
    request.addEventListener("error", () => failed(upload, "the server could not be reached"));
    request.addEventListener("loadend", () => { sending -= 1; next(); });
    sending += 1;
    request.send(body);
  }
  function ended(upload, request) {
    if (request.status !== 202) {
      let why = `the server answered ${request.status}`;
      if (request.getResponseHeader("Content-Type")?.includes("json")) why = JSON.parse(request.responseText).detail;
      failed(upload, visible(why));
      return;
    }
    upload.bar.remove();
    upload.said.textContent = "accepted";
    upload.said.className = "badge good";
    put(upload.said.parentElement, "a", { textContent: "Open", href: JSON.parse(request.responseText).address });
  }
  function failed(upload, why, again = true) {
    upload.bar.hidden = true;
    upload.said.textContent = `upload failed: ${why}`;
    upload.said.className = "bad";
    if (!again) return;
    const button = put(upload.said.parentElement, "button", { type: "button", textContent: "Try again" });
    button.addEventListener("click", () => {
      button.remove();
      upload.bar.hidden = false;
      upload.said.textContent = "waiting";
      upload.said.className = "";
      waiting.push(upload);
      next();
    });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(input.files);
    input.value = "";
  });
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) form.classList.remove("over");
  });
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    begin(event.dataTransfer.files);
  });
})();

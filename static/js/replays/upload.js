// Sends a file piece by piece, so that no request is large and the bar shows how far it is.

import { postBytes, postJson } from "../lib/api.js";
import { $, h } from "../lib/dom.js";

const PIECE_BYTES = 2 * 1024 * 1024;

const place = (name) => `/api/traces/${encodeURIComponent(name)}/`;

export function showFiles(files) {
  const select = $("#id_file");
  const told = files.map(({ name, size }) => `${name}:${size}`).join("\n");
  if (select.dataset.told === told) return;
  select.dataset.told = told;
  const value = select.value;
  select.replaceChildren(...files.map(({ name, size }) => h("option", { value: name }, `${name} (${size})`)));
  if (files.some(({ name }) => name === value)) select.value = value;
  $("#forget-trace").hidden = !files.length;
}

async function send(file) {
  const name = file.name.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.\-_]+/, "");
  let offset = 0;
  do {
    const piece = file.slice(offset, offset + PIECE_BYTES);
    const isLast = offset + piece.size >= file.size;
    await postBytes(`${place(name)}?offset=${offset}&last=${Number(isLast)}`, piece);
    offset += piece.size;
    $("#upload-progress").value = offset / Math.max(file.size, 1);
  } while (offset < file.size);
  return name;
}

export function startUpload(refresh, showError) {
  const input = $("#upload");
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    const say = (text) => ($("#upload-text").textContent = text);
    if (file.size > Number(input.dataset.maxBytes)) return say("The file is larger than a trace may be: pack it with gzip.");
    input.disabled = true;
    $("#upload-progress").hidden = false;
    try {
      const name = await send(file);
      await refresh();
      $("#id_file").value = name;
      say(`${name} is there.`);
      input.value = "";
    } catch (error) {
      say(error.message);
    } finally {
      input.disabled = false;
      $("#upload-progress").hidden = true;
    }
  });
  $("#forget-trace").addEventListener("click", async () => {
    const name = $("#id_file").value;
    if (!name || !confirm(`Delete the file ${name}? Replays of it that ended keep their series.`)) return;
    try {
      await postJson(`${place(name)}remove/`);
      await refresh();
    } catch (error) {
      showError(error.message);
    }
  });
}

// Pictures of every formula of `formulas.json` as rendered by WebKit, inline and displayed, with
// the code and the styles of exports: node ui/tests/window/formulas.js (after npm run build:ui;
// needs WebKitGTK's MiniBrowser).
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { createContext, runInContext } from "node:vm";
import { Display, Session } from "./driver.js";

const BROWSER = process.env.MINI_BROWSER ?? "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";
const PER_PICTURE = 30;
const [WIDTH, HEIGHT] = [1000, 2000];

const ui = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, ui));
const script = createContext({ schemeOf: () => "https" });
runInContext(read("dist-export/answers.js").toString(), script);

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const font =
  "../node_modules/@fontsource/noto-sans-math/files/noto-sans-math-latin-400-normal.woff2";
const styles = ["tokens", "answer", "math", "code", "document"]
  .map((name) => read(`src/styles/${name}.css`))
  .join("\n");

function page(formulas) {
  const rows = formulas.map((tex) => {
    const inline = script.answerHtml(`in \\(${tex}\\) line`);
    return `<tr><td class="tex">${escape(tex)}<td>${inline}<td>${script.answerHtml(`$$\n${tex}\n$$`)}`;
  });
  return `<!doctype html><meta charset="utf-8"><style>${styles}
    @font-face { font-family: "Noto Sans Math"; src: url(font.woff2); }
    body { margin: 8px; font: 16px sans-serif; } p { margin: 0; } table { width: 100%; }
    .answer td { white-space: normal; } .answer .tex { width: 16rem; font: 11px monospace; }
    </style><div class="answer document"><table>${rows.join("\n")}</table></div>`;
}

const formulas = JSON.parse(read("src/text/formulas.json"));
const parts = Array.from({ length: Math.ceil(formulas.length / PER_PICTURE) }, (_, at) =>
  formulas.slice(at * PER_PICTURE, (at + 1) * PER_PICTURE),
);
const server = createServer(({ url }, response) => {
  const part = parts[Number(url.slice(1))];
  response.setHeader("content-type", part ? "text/html" : "font/woff2");
  response.end(part ? page(part) : url === "/font.woff2" ? read(font) : "");
}).listen(0, "127.0.0.1");
await once(server, "listening");

const out = new URL("tests/out/formulas/", ui);
mkdirSync(out, { recursive: true });
const display = await Display.open({ width: WIDTH, height: HEIGHT });
const session = await Session.open(display, BROWSER, ["--automation"], {});
await session.send("POST", "/window/rect", { x: 0, y: 0, width: WIDTH, height: HEIGHT });
for (const at of parts.keys()) {
  await session.send("POST", "/url", { url: `http://127.0.0.1:${server.address().port}/${at}` });
  await session.runAsync(
    // Otherwise the first picture of a window is blank.
    "await document.fonts.ready; await new Promise((next) => setTimeout(next, 500)); return true;",
  );
  writeFileSync(new URL(`${at}.png`, out), await session.screenshot());
}
console.log(`${parts.length} pictures of ${formulas.length} formulas: ui/tests/out/formulas`);
process.exit(0);

import { after, before, test } from "node:test";
import { App } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

test("the worker that colours code starts under the window's policy", async (t) => {
  const app = await App.open(t, display);
  await app.exact();
  const answer = await app.ask("What is Goldcrest?");
  // The tiny model writes no code, so its answer is edited.
  const code = "```python\ndef f(x):\n    return 'two'\n```";
  const text = `- In a list:\n\n  ${code.replaceAll("\n", "\n  ")}\n\n${code}`;
  await app.invoke("edit_message", { message: answer.id, text, answer: null });
  await app.session.send("POST", "/refresh", {});
  for (const where of ["li figure.code", ".block > figure.code"])
    await app.until(
      `the colours of ${where}`,
      async () =>
        "def" ===
        (await app.session.run(
          "return document.querySelector(`${arguments[0]} .hljs-keyword`)?.textContent ?? ''",
          where,
        )),
    );
  await app.picture("code");
});

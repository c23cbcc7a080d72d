import { expect, test } from "vitest";
import { md } from "./markdown";

test("raw HTML is text", () => {
  const html = md.render('<img src=x onerror="alert(1)"> <b>bold</b>\n\n<script>alert(1)</script>');
  expect(html).not.toMatch(/<(?:img|b|script)/u);
  expect(html).toContain("&lt;script&gt;");
});

test("only plain addresses become links", () => {
  const html = md.render(
    "[a](javascript:alert(1)) [b](data:text/html,x) [c](file:///etc/passwd) [d](https://a.example) [e](mailto:a@b.example)",
  );
  expect([...html.matchAll(/href="([^"]*)"/gu)].map((match) => match[1])).toEqual([
    "https://a.example",
    "mailto:a@b.example",
  ]);
});

test("an image becomes a link that says where it is", () => {
  expect(md.render("![a bird](https://a.example/bird.png)")).toBe(
    '<p><a href="https://a.example/bird.png">a bird</a></p>\n',
  );
  expect(md.render("![](https://a.example/x.png)")).toContain(">https://a.example/x.png</a>");
});

test("a link's text cannot be reordered or hidden", () => {
  const html = md.render("[\u202Emoc.knab\u202C\u200B](https://evil.example)");
  expect(html).toContain(">moc.knab</a>");
});

test("cells are aligned without inline styles", () => {
  const html = md.render("| a | b |\n|---|--:|\n| 1 | 2 |");
  expect(html).toContain('<td align="right">2</td>');
  expect(html).not.toContain("style=");
});

test("code is plain text that names its language, whatever the language is", () => {
  const html = md.render('```python\ndef f(): pass\n```\n\n```a"b\n<b>\n```');
  expect(html).toContain('<code data-language="python">def f(): pass</code>');
  expect(html).toContain('<code data-language="a&quot;b">&lt;b&gt;</code>');
});

import { expect, test } from "vitest";
import { address, addressParts, withoutDeceptiveCharacters, withTextAlone } from "./links";

test.each([
  ["https://a.example/x?y#z", "https://a.example/x?y#z"],
  ["http://a.example", "http://a.example/"],
  ["mailto:a@b.example", "mailto:a@b.example"],
  ["https://аpple.example", "https://xn--pple-43d.example/"],
  ["https://bank.example@evil.example/", null],
  ["https://u:p@a.example/", null],
  ["http://:p@a.example/", null],
  ["javascript:alert(1)", null],
  [" JAVASCRIPT:alert(1)", null],
  ["data:text/html,x", null],
  ["file:///etc/passwd", null],
  ["tauri://localhost", null],
  ["//a.example", null],
  ["/settings", null],
  ["", null],
])("%s opens %s", (href, opened) => {
  expect(address(href)).toBe(opened);
});

test("the host stands out, whatever comes before it", () => {
  expect(addressParts("https://bank.example@evil.example:8080/path")).toEqual([
    "https://bank.example@",
    "evil.example:8080",
    "/path",
  ]);
  expect(addressParts("mailto:a@b.example")).toEqual(["mailto:", "a@b.example", ""]);
});

test("characters that hide or reorder are taken out, letters and emoji are not", () => {
  expect(withoutDeceptiveCharacters("a\u202Eb\u200Bc\u2066d\uFEFF")).toBe("abcd");
  expect(withoutDeceptiveCharacters("naïve 東京 🐦")).toBe("naïve 東京 🐦");
});

test.each([
  ["mailto:a@b", "mailto:a@b"],
  ["mailto:a@b?attach=/etc/passwd", "mailto:a@b"],
  [
    "MAILTO:a@b?Subject=A%20b&attach=x&cc=c@d&body=x%26attach=y#z",
    "MAILTO:a@b?Subject=A%20b&body=x%26attach=y",
  ],
  ["mailto:a@b?%61ttach=x&bcc=c@d", "mailto:a@b"],
  ["https://x.org/?attach=1#a", "https://x.org/?attach=1#a"],
])("a mail has a subject and a body and no more: %s", (href, kept) => {
  expect(withTextAlone(href)).toBe(kept);
});

import { expect, test } from "vitest";
import type { ApiStatus } from "../state/types";
import { invalidWords, readOrigins } from "./origins";
import { requestWords, statusWords } from "./words";

const listening = (running: number, waiting: number): ApiStatus => ({
  kind: "listening",
  baseUrl: "http://127.0.0.1:8484/v1",
  running,
  waiting,
});

test("requests are counted only if there are some", () => {
  expect(requestWords(listening(0, 0))).toBe("");
  expect(requestWords(listening(1, 0))).toBe("Requests: 1 running");
  expect(requestWords(listening(2, 3))).toBe("Requests: 2 running, 3 waiting");
  expect(requestWords({ kind: "off" })).toBe("");
  expect(statusWords({ kind: "failed", message: "" })).toBe("Not running");
});

test("origins are read line by line, as browsers send them", () => {
  expect(
    readOrigins(" https://Example.org/ \n\nhttp://localhost:3000\nhttps://example.org"),
  ).toEqual({ origins: ["https://example.org", "http://localhost:3000"], invalid: [] });
  expect(readOrigins("http://[::1]:3000\nhttps://example.org:443").origins).toEqual([
    "http://[::1]:3000",
    "https://example.org",
  ]);
  expect(readOrigins("")).toEqual({ origins: [], invalid: [] });
});

test("pages in editors, extensions and apps have origins with schemes of their own", () => {
  const origins = [
    "vscode-webview://1f2e-3d",
    "app://obsidian.md",
    "chrome-extension://abcdefgh",
    "tauri://localhost",
    "capacitor://localhost:8080",
  ];
  expect(readOrigins(origins.map((origin) => `${origin}/`).join("\n"))).toEqual({
    origins,
    invalid: [],
  });
  const wrong = [
    "null",
    "app://",
    "app://a/b",
    "app://a b",
    "app://*",
    "app://a\u0001",
    "1app://a",
  ];
  expect(readOrigins(wrong.join("\n"))).toEqual({ origins: [], invalid: wrong });
});

test("what is more or less than an origin is named", () => {
  const lines = [
    "example.org",
    "*",
    "https://*.example.org",
    "https://example.org/path",
    "https://a@example.org",
    "file:///etc",
    "http://a b",
    "https://example.org:99999",
  ];
  const { origins, invalid } = readOrigins(["https://a.org", ...lines].join("\n"));
  expect([origins, invalid]).toEqual([["https://a.org"], lines]);
  expect(invalidWords(invalid.slice(0, 1))).toMatch(
    /^“example\.org” is not the address of a site/u,
  );
  expect(invalidWords(invalid.slice(0, 2))).toMatch(/^“example\.org”, “\*” are not addresses/u);
  expect(invalidWords([])).toBeNull();
});

import { expect, test } from "vitest";
import { withoutPageLinks } from "./links";

test("links to other pages are words, addresses stay", () => {
  expect(
    withoutPageLinks("See [verify](verify.md#how) and [the hub](https://huggingface.co)."),
  ).toBe("See verify and [the hub](https://huggingface.co).");
});

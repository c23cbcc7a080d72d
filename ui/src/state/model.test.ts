import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { big, bundledModel, ready } from "../host/fake/library";
import { Model } from "./model.svelte";
import { Notices } from "./notices.svelte";

test("what a file is called cannot be reordered", () => {
  const model = new Model(new FakeHost(), new Notices());
  const reordered = "good\u202Efugg.exe";
  model.take({
    ...ready({ ...big, name: reordered, file: `/tmp/${reordered}` }),
    error: { code: "bad-model", message: `${reordered} cannot be opened.` },
  });
  expect([model.open?.name, model.open?.file, model.error?.message]).toEqual([
    "goodfugg.exe",
    "/tmp/goodfugg.exe",
    "goodfugg.exe cannot be opened.",
  ]);
  model.dismissFault();
  expect(model.fault).toBeNull();
});

test("a bad file's reason is shown until it is put aside, and again for the next one", () => {
  const model = new Model(new FakeHost(), new Notices());
  const error = { code: "bad-model", message: "a.gguf ends early." } as const;
  model.take({ ...ready(bundledModel), error });
  expect(model.fault?.message).toBe("a.gguf ends early.");
  model.dismissFault();
  expect(model.fault).toBeNull();
  model.take(ready(bundledModel));
  model.take({ ...ready(bundledModel), error });
  expect(model.fault?.message).toBe("a.gguf ends early.");
});

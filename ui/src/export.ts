import { answerHtml } from "./text/document";

/**
 * Rendering of answers for exports, shared with the page: one script that the app runs in QuickJS
 * (`chat_files/src/html/answers.rs`). There is no DOM there, and no URL parser, which the app
 * provides.
 */
declare const schemeOf: (address: string) => string | undefined;

class PlainAddress {
  readonly protocol: string;
  readonly username = "";
  readonly password = "";

  constructor(readonly href: string) {
    const scheme = schemeOf(href);
    if (scheme === undefined) throw new TypeError("it is no plain address");
    this.protocol = `${scheme}:`;
  }
}

Object.assign(globalThis, {
  URL: PlainAddress,
  console: { log: () => {}, warn: () => {}, error: () => {} },
  answerHtml,
});

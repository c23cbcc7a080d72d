import { answerHtml } from "./text/document";

/**
 * The page's rendering of answers for exports, as one script that the app runs in QuickJS (`chat_files/src/html/answers.rs`).
 * There it has no DOM; what else it lacks of a browser is a parser of addresses, which the app provides.
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

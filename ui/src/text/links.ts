const SCHEMES = new Set(["https:", "http:", "mailto:"]);

/** Characters that reorder or hide text, so that one URL can look like another. */
const DECEPTIVE =
  /[\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFE00-\uFE0F\uFEFF\uFFA0\u{E0000}-\u{E0FFF}]/gu;

export function withoutDeceptiveCharacters(text: string): string {
  return text.replace(DECEPTIVE, "");
}

/** Normalised URL, or null if Goldcrest does not open it. */
export function address(href: string): string | null {
  try {
    const url = new URL(href);
    // A user name can look like the host: https://bank.example@evil.example.
    const hides = url.username !== "" || url.password !== "";
    return SCHEMES.has(url.protocol) && !hides ? url.href : null;
  } catch {
    return null;
  }
}

/** Reduces a mailto URL to its recipient, subject and body: other fields could attach a file. */
export function withTextAlone(href: string): string {
  if (!/^mailto:/iu.test(href)) return href;
  const [to = "", fields = ""] = (href.split("#")[0] ?? "").split(/\?(.*)/su);
  const kept = fields.split("&").filter((field) => /^(?:subject|body)(?:=|$)/iu.test(field));
  return kept.length === 0 ? to : `${to}?${kept.join("&")}`;
}

/** Splits a URL into three parts. The middle one, the host or mailbox, is to be emphasised. */
export function addressParts(href: string): [before: string, who: string, after: string] {
  const url = new URL(href);
  const who = url.protocol === "mailto:" ? url.pathname : url.host;
  const at = href.indexOf(who, url.protocol.length);
  return [href.slice(0, at), who, href.slice(at + who.length)];
}

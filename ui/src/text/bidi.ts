/** Unicode characters that control the direction of the text after them. */
const CONTROLS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/**
 * Removes bidi controls from a title or a name: "a<RLO>cod.exe" would read "aexe.doc". Characters
 * needed by emoji and scripts stay.
 */
export function withoutBidiControls(text: string): string {
  return text.replace(CONTROLS, "");
}

/** Checks if a code unit is a bidi control. */
export function setsDirection(code: number): boolean {
  return (
    code === 0x061c ||
    code === 0x200e ||
    code === 0x200f ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}

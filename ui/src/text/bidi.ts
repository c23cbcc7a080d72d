/** The Unicode characters that set the direction of the text after them. */
const CONTROLS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** A title or a name as it is written: "a<RLO>cod.exe" would read "aexe.doc". What emoji and scripts need stays. */
export function withoutBidiControls(text: string): string {
  return text.replace(CONTROLS, "");
}

/** Says of a character's code that it is one of these. */
export function setsDirection(code: number): boolean {
  return (
    code === 0x061c ||
    code === 0x200e ||
    code === 0x200f ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}

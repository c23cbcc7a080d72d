import { describe, expect, test } from "vitest";
import { type Block, BlockReader } from "./blocks";
import { md } from "./markdown";

const answer = `Compound interest pays *interest on interest*:

$$
A = P\\,(1 + r)^n
$$

| Years | At 3 % |
|------:|-------:|
| 5 | $1,159 |

1. **First.** A line

2. Second, with code:

   \`\`\`sh
   echo hello
   \`\`\`

3. Third
   - nested

\`\`\`python
def f(x):

    return x
\`\`\`

> A quotation
that goes on

Heading
-------

    indented code

The end, with $x$ and [a link](https://a.example).
`;

/** Text of all blocks, code included. */
function shown(blocks: Block[]): string {
  return blocks
    .map((block) => (block.kind !== "code" ? block.html : `CODE ${block.language}\n${block.code}`))
    .join("");
}

/** All blocks of a text, without their groups. */
function blocksOf(reader: BlockReader, text: string, open: boolean): Block[] {
  return reader.read(text, open).groups.flat();
}

function whole(text: string): string {
  return shown(blocksOf(new BlockReader(), text, false));
}

/** Reads a text in chunks of the given sizes, in rotation, as if streamed. */
function read(text: string, sizes: number[]): Block[] {
  const reader = new BlockReader();
  let at = 0;
  for (let turn = 0; at < text.length; turn++) {
    at += sizes[turn % sizes.length] ?? 1;
    blocksOf(reader, text.slice(0, at), true);
  }
  return blocksOf(reader, text, false);
}

describe("however it arrives, the end is the same", () => {
  test.each([[[1]], [[2, 3]], [[7]], [[1, 40]], [[100]]])("in pieces of %j", (sizes) => {
    expect(shown(read(answer, sizes))).toBe(whole(answer));
  });
});

const texts = {
  answer,
  "a link before its address":
    "See [the book][1].\n\nAnother.\n\nOne more.\n\n[1]: https://a.example/b\n",
  "an address, then links":
    "[1]: https://a.example/b\n\nSee [the book][1].\n\nAnd [again][1].\n\nEnd.",
  "an address within a list": "- see [a]\n\n  [a]: https://a.example\n\nText with [a].\n",
  "a heading by its underline": "One\n\nTwo\n===\n\nThree\n",
  "an open fence": "Text\n\n```js\nlet a = `b`\n",
  "a fence in a list": "- a\n\n  ```js\n  let a\n  ```\n- b\n\nEnd\n",
  "lists and numbers": "1. a\n\n2. b\n\nIn\n\n1999 was a year\n\n- c\n- d\n",
  "lines that end as on Windows or an old Mac": "One\r\n\r\n- two\r- three\r\r```\ra\r```\rEnd",
  "an open formula": "Before\n\n$$\n\\frac{a}{<b>\n\nafter",
};

describe("grown letter by letter, a text is what it is when read at once", () => {
  test.each(Object.entries(texts))("%s", (_, text) => {
    expect(shown(read(text, [1]))).toBe(whole(text));
  });
});

test("a link finds its address at the end of the answer, and what has no link stays", () => {
  const reader = new BlockReader();
  const text = `Plain.\n\n${texts["a link before its address"]}`;
  const before = blocksOf(reader, text.slice(0, -30), true);
  const after = blocksOf(reader, text, false);
  expect(shown(before)).toContain("[the book][1]");
  expect(shown(after)).toContain('<a href="https://a.example/b">the book</a>');
  expect(after[0]).toBe(before[0]);
});

/** Repeats a text until it spans several windows. */
const long = (text: string, length = 90_000): string =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length);

const floods = {
  "one word": long("goldcrest "),
  "one letter": long("a"),
  "empty lines": long("\n"),
  paragraphs: long("a\n\n"),
  lines: long("some words in a line\n"),
  "a list": long("- an item\n"),
  "a list of lists": long("- a\n  - b\n  - c\n"),
  numbers: Array.from({ length: 6000 }, (_, at) => `${at + 1}. line`).join("\n"),
  "a table": `| a | b |\n|---|---|\n${long("| 1 | 2 |\n")}`,
  quotation: long("> words\n"),
  code: `\`\`\`js\n${long("let a = 1;\n")}\n\`\`\`\n\nEnd`,
  "code in one line": `Text\n\n  ~~~~\n  ${long("a")}\n  ~~~\n   ~~~~~ \nEnd`,
  "code without an end": `\`\`\`\n${long("x\n")}`,
  formulas: long("$x$ "),
  "an open formula": `$$\n${long("x + ")}`,
  brackets: long("[a]("),
  marks: long("*a `b **c "),
  emoji: long("🐦"),
};

describe("a text longer than any window", () => {
  test.each(Object.entries(floods))("%s: is the same however it arrives", (_, text) => {
    const pieces = read(text, [9_000, 7, 11_111]);
    expect(shown(pieces)).toBe(whole(text));
    expect(pieces.map(({ id }) => id)).toEqual(pieces.map((_, at) => at));
  });

  test.each(Object.entries(floods))("%s: half the text is read in half the work", (_, text) => {
    const work = (length: number): number => {
      let parsed = 0;
      const parse = md.parse.bind(md);
      md.parse = (part, env) => {
        parsed += part.length + 1000;
        return parse(part, env);
      };
      const reader = new BlockReader();
      for (let at = 0; at < length; at += 6_000) reader.read(text.slice(0, at), true);
      reader.read(text.slice(0, length), false);
      new BlockReader().read(text.slice(0, length), false);
      md.parse = parse;
      return parsed;
    };
    // Short texts are parsed as a whole at each update, so only the part after the first window
    // counts.
    const first = work(30_000);
    expect(work(90_000) - first).toBeLessThan(2.5 * (work(60_000) - first) + 100_000);
  });

  test("a list is cut between two items, and its numbers go on", () => {
    const blocks = blocksOf(new BlockReader(), floods["numbers"], false);
    expect(blocks.length).toBeGreaterThan(3);
    let next = 1;
    for (const block of blocks) {
      if (block.kind !== "html") throw new Error("not a list");
      expect(block.html).toMatch(next === 1 ? /^<ol>/u : new RegExp(`^<ol start="${next}">`, "u"));
      next += block.html.split("<li>").length - 1;
    }
    expect(next).toBe(6001);
  });

  test("a table is cut between two rows, and its head comes again", () => {
    const blocks = blocksOf(new BlockReader(), floods["a table"], false);
    expect(blocks.length).toBeGreaterThan(2);
    for (const block of blocks) {
      expect(block.kind === "table" && block.html).toMatch(/<th>a<\/th>[^]*<td>2<\/td>/u);
    }
  });

  test("the parts of a block that was cut go on from one another, and what follows does not", () => {
    for (const name of ["one word", "a list", "a table", "quotation", "lines"] as const) {
      const blocks = blocksOf(
        new BlockReader(),
        `Before.\n\n${floods[name].slice(0, 30_000)}\n\nAfter.`,
        false,
      );
      const joined = blocks.map((block) => block.kind !== "code" && block.joined);
      expect(joined.slice(0, 2)).toEqual([false, false]);
      expect(joined.slice(2, -1)).toEqual(Array<boolean>(blocks.length - 3).fill(true));
      expect(joined.at(-1)).toBe(false);
    }
    const apart = blocksOf(new BlockReader(), floods["paragraphs"].slice(0, 15_000), false);
    expect(apart.some((block) => block.kind !== "code" && block.joined)).toBe(false);
  });

  test("a group holds no more than can be laid out at once", () => {
    for (const name of ["one letter", "paragraphs", "a table", "code"] as const) {
      const text = floods[name].slice(0, 50_000);
      for (const group of new BlockReader().read(text, false).groups) {
        const sizes = group.map((block) => (block.kind === "code" ? 0 : block.html.length));
        expect(group.length).toBeLessThanOrEqual(32);
        expect(sizes.slice(0, -1).reduce((sum, size) => sum + size, 0)).toBeLessThan(20_000);
      }
    }
  });

  test("code stays one block, with every letter of it", () => {
    const blocks = blocksOf(new BlockReader(), floods["code"], false);
    expect(blocks).toHaveLength(2);
    expect(blocks[0]).toMatchObject({ language: "js", code: long("let a = 1;\n").trimEnd() });
    const [, line] = blocksOf(new BlockReader(), floods["code in one line"], false);
    expect(line).toMatchObject({ kind: "code", code: `${long("a")}\n~~~` });
  });

  test("it is read a slice at a time, and nothing is shown twice or lost", () => {
    const text = floods["one word"];
    const reader = new BlockReader();
    const counts: number[] = [];
    for (let done = false; !done;) {
      const reading = reader.read(text, false, () => true);
      counts.push(reading.groups.flat().length);
      done = reading.done;
    }
    expect(counts.length).toBeGreaterThan(3);
    for (const [at, count] of counts.entries())
      expect(count - (counts[at - 1] ?? 0)).toBeLessThan(2);
    expect(shown(blocksOf(reader, text, false))).toBe(whole(text));
  });

  test("full groups stay the same object while the text grows", () => {
    const reader = new BlockReader();
    const text = floods["paragraphs"];
    const before = reader.read(text.slice(0, 60_000), true).groups;
    const after = reader.read(text, true).groups;
    expect(after.length).toBeGreaterThan(before.length);
    for (const [at, group] of before.slice(0, -30).entries()) expect(after[at]).toBe(group);
  });
});

test("read at once, the blocks are what markdown-it makes of the whole", () => {
  const html = whole("# A\n\nb *c*\n\n- d\n- e\n");
  expect(html).toBe(md.render("# A\n\nb *c*\n\n- d\n- e\n"));
});

test("a finished block is the same object ever after", () => {
  const reader = new BlockReader();
  const [first] = blocksOf(reader, "One.\n\nTwo.\n\nThr", true);
  const later = blocksOf(reader, "One.\n\nTwo.\n\nThree.\n\nFour", true);
  expect(later[0]).toBe(first);
  expect(later).toHaveLength(4);
});

test("a block that another follows is the same object while that one's first line grows", () => {
  const reader = new BlockReader();
  const list = "- one\n- two\n\n";
  const first = blocksOf(reader, `${list}A line`, true)[0];
  expect(blocksOf(reader, `${list}A line that goes`, true)[0]).toBe(first);
  expect(blocksOf(reader, `${list}A line that goes on.\n\nNext`, true)[0]).toBe(first);
  const code = "```sh\nls\n```\n\n";
  blocksOf(reader, `${code}A line`, true);
  const second = blocksOf(reader, `${code}A line that`, true)[0];
  expect(blocksOf(reader, `${code}A line that goes`, true)[0]).toBe(second);
});

test("a list goes on after a number that came alone", () => {
  const reader = new BlockReader();
  blocksOf(reader, "1. a\n\n2", true);
  const blocks = blocksOf(reader, "1. a\n\n2. b\n", true);
  expect(blocks).toHaveLength(1);
});

test("a fence is open until its end has come", () => {
  const reader = new BlockReader();
  const open = (text: string): unknown =>
    blocksOf(reader, text, true).map((b) => b.kind === "code" && b.open);
  expect(open("```js\nlet a")).toEqual([true]);
  expect(open("```js\nlet a = `b`\n")).toEqual([true]);
  expect(open("```js\nlet a = `b`\n```")).toEqual([false]);
  expect(open("```js\nlet a = `b`\n```\nText")).toEqual([false, false]);
});

test("long code keeps what it is indented by itself", () => {
  const code = "if (a) {\n    call();\n}\n".repeat(2000);
  const indented = code.replace(/^(?=.)/gmu, "   ");
  const blocks = blocksOf(new BlockReader(), `   \`\`\`js\n${indented}`, true);
  expect(blocks.map((block) => block.kind === "code" && block.code)).toEqual([code.trimEnd()]);
});

test("another text starts over", () => {
  const reader = new BlockReader();
  blocksOf(reader, "One.\n\nTwo.\n\nThree", true);
  expect(shown(blocksOf(reader, "Other.", false))).toBe("<p>Other.</p>\n");
});

test("a long answer costs what its last block costs", () => {
  const reader = new BlockReader();
  const parsed: number[] = [];
  const parse = md.parse.bind(md);
  md.parse = (text, env) => {
    parsed.push(text.length);
    return parse(text, env);
  };
  const long = answer.repeat(60);
  for (let at = 0; at < long.length; at += 200) blocksOf(reader, long.slice(0, at), true);
  md.parse = parse;
  expect(Math.max(...parsed)).toBeLessThan(1500);
});

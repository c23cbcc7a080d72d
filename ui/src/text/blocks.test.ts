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

/** What the blocks show, code included, as one text. */
function shown(blocks: Block[]): string {
  return blocks
    .map((block) => (block.kind === "html" ? block.html : `CODE ${block.language}\n${block.code}`))
    .join("");
}

function whole(text: string): string {
  return shown(new BlockReader().read(text, false));
}

/** The text in pieces of the given sizes, in turn, as they would arrive. */
function read(text: string, sizes: number[]): Block[] {
  const reader = new BlockReader();
  let at = 0;
  for (let turn = 0; at < text.length; turn++) {
    at += sizes[turn % sizes.length] ?? 1;
    reader.read(text.slice(0, at), true);
  }
  return reader.read(text, false);
}

describe("however it arrives, the end is the same", () => {
  test.each([[[1]], [[2, 3]], [[7]], [[1, 40]], [[100]]])("in pieces of %j", (sizes) => {
    expect(shown(read(answer, sizes))).toBe(whole(answer));
  });
});

test("read at once, the blocks are what markdown-it makes of the whole", () => {
  const html = whole("# A\n\nb *c*\n\n- d\n- e\n");
  expect(html).toBe(md.render("# A\n\nb *c*\n\n- d\n- e\n"));
});

test("a finished block is the same object ever after", () => {
  const reader = new BlockReader();
  const [first] = reader.read("One.\n\nTwo.\n\nThr", true);
  const later = reader.read("One.\n\nTwo.\n\nThree.\n\nFour", true);
  expect(later[0]).toBe(first);
  expect(later).toHaveLength(4);
});

test("a block that another follows is the same object while that one's first line grows", () => {
  const reader = new BlockReader();
  const list = "- one\n- two\n\n";
  const first = reader.read(`${list}A line`, true)[0];
  expect(reader.read(`${list}A line that goes`, true)[0]).toBe(first);
  expect(reader.read(`${list}A line that goes on.\n\nNext`, true)[0]).toBe(first);
  const code = "```sh\nls\n```\n\n";
  reader.read(`${code}A line`, true);
  const second = reader.read(`${code}A line that`, true)[0];
  expect(reader.read(`${code}A line that goes`, true)[0]).toBe(second);
});

test("a list goes on after a number that came alone", () => {
  const reader = new BlockReader();
  reader.read("1. a\n\n2", true);
  const blocks = reader.read("1. a\n\n2. b\n", true);
  expect(blocks).toHaveLength(1);
});

test("a fence is open until its end has come", () => {
  const reader = new BlockReader();
  const open = (text: string): unknown =>
    reader.read(text, true).map((b) => b.kind === "code" && b.open);
  expect(open("```js\nlet a")).toEqual([true]);
  expect(open("```js\nlet a = `b`\n")).toEqual([true]);
  expect(open("```js\nlet a = `b`\n```")).toEqual([false]);
  expect(open("```js\nlet a = `b`\n```\nText")).toEqual([false, false]);
});

test("another text starts over", () => {
  const reader = new BlockReader();
  reader.read("One.\n\nTwo.\n\nThree", true);
  expect(shown(reader.read("Other.", false))).toBe("<p>Other.</p>\n");
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
  for (let at = 0; at < long.length; at += 200) reader.read(long.slice(0, at), true);
  md.parse = parse;
  expect(Math.max(...parsed)).toBeLessThan(1500);
});

/** Script of an answer: a pattern for the question, the thinking and the text. */
type Scripted = { asked: RegExp; thinking: string; text: string };

const guide: Scripted[] = [
  {
    asked: /what is goldcrest|what is this/i,
    thinking: "They ask about the app itself. A short, plain answer is best.",
    text: "Goldcrest is a desktop chat app that runs a language model on your own computer. It works offline, and your chats stay on this machine.",
  },
  {
    asked: /open.*(model|gguf)/i,
    thinking: "They want to load their own file. The model's name at the top right opens that.",
    text: "Click the **name of the model** at the top right and choose **Open a model…**. Pick a SmolLM3-3B file in GGUF format, or drop it on the window.",
  },
  {
    asked: /sent away|private|offline/i,
    thinking: "A question about privacy.",
    text: "No. Everything runs on this computer, and nothing you write is sent anywhere.",
  },
];

const rich: Scripted = {
  asked: /interest|table|compound/i,
  thinking: `The user wants compound interest explained, with a formula, a comparison and some code.

Start with the formula. The balance after n years is P(1 + r)^n. For a table, take 1,000 at 3 % and 5 %, over 5, 10 and 20 years.

1,000 × 1.03^5 = 1,159.27. 1,000 × 1.03^10 = 1,343.92. 1,000 × 1.03^20 = 1,806.11.
1,000 × 1.05^5 = 1,276.28. 1,000 × 1.05^10 = 1,628.89. 1,000 × 1.05^20 = 2,653.30.

Careful with money signs: $5 and $10 must not turn into mathematics. A short Python function closes it.`,
  text: `Compound interest pays interest on interest. If you put in a principal $P$ at a yearly rate $r$, then after $n$ years you have

$$
A = P\\,(1 + r)^n, \\qquad n_{\\text{double}} = \\frac{\\ln 2}{\\ln(1 + r)}
$$

A small difference in the rate becomes a large one over time:

| Years | At 3 % | At 5 % | Difference |
|------:|-------:|-------:|-----------:|
| 5 | $1,159 | $1,276 | $117 |
| 10 | $1,344 | $1,629 | $285 |
| 20 | $1,806 | $2,653 | **$847** |

## In code

\`\`\`python
def balance(principal: float, rate: float, years: int) -> float:
    """The balance after \`years\` of yearly compounding."""
    return principal * (1 + rate) ** years


for years in (5, 10, 20):
    low, high = balance(1000, 0.03, years), balance(1000, 0.05, years)
    print(f"{years:>2} years: {low:8.2f} {high:8.2f}")
\`\`\`

Three things to keep in mind:

1. **Time matters more than the amount.** The last ten years add more than the first ten.
2. **Fees compound too.** A fee of 1 % a year takes about $282 of the $2,653 above.
3. Inflation works the other way: divide by \`(1 + inflation) ** years\`.

> A rule of thumb: divide 72 by the rate in percent, and you have the years until the money doubles.

The derivation is in [the article on compound interest](https://en.wikipedia.org/wiki/Compound_interest).`,
};

const story: Scripted = {
  asked: /story|poem|bird/i,
  thinking: "A short piece about a small bird. Keep it calm and concrete.",
  text: `The goldcrest weighs about as much as a sheet of paper, and in October it crosses the North Sea.

Nobody who has held one quite believes this. It lands on the first hedge it meets, so tired that it lets people walk past, and within the hour it is hunting spiders again, hanging upside down from the tips of the spruce, calling in a voice so high that most people over sixty have stopped hearing it.

*Small*, it turns out, is not the same as *slight*.`,
};

const summary: Scripted = {
  asked: /^Sum up our chat/,
  thinking: "",
  text: `We looked at how compound interest grows an amount of $1,000.

- **Found**: after twenty years it is $1,806 at 3 % and $2,653 at 5 %; the last ten years add more than the first ten.
- **Code**: \`balance(principal, rate, years)\` gives \`principal * (1 + rate) ** years\`.
- **Still open**: what a monthly deposit adds, and what a fee of 1 % takes.`,
};

const plain: Scripted = {
  asked: /./,
  thinking:
    "Let me look at what is being asked.\n\nIt is a short question, so a short answer will do. I should give the main point first, then one detail that helps.",
  text: "Here is the short answer: it depends on how often you do it.\n\n- **Rarely**: do it by hand, and write down the steps as you go.\n- **Every week**: a small script saves time after a month or so.\n- **Every day**: give it a proper home, with tests, so that you can trust it.\n\nIf you tell me which of these it is, I can be more exact.",
};

/** A long answer of about `tokens` words, for measurements. */
function long(tokens: number): Scripted {
  const section = `${story.text}\n\n${rich.text}\n\n`;
  const words = section.split(/(?<=\s)/).length;
  return {
    asked: /./,
    thinking: rich.thinking,
    text: section.repeat(Math.ceil(tokens / words)),
  };
}

export function answerTo(question: string): { thinking: string; text: string } {
  const echo = /^Say:\s*([\s\S]+)/.exec(question);
  if (echo?.[1]) return { thinking: plain.thinking, text: echo[1] };
  const length = /(\d+) tokens/.exec(question);
  if (length) return long(Number(length[1]));
  return [summary, ...guide, rich, story].find((each) => each.asked.test(question)) ?? plain;
}

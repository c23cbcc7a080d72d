/** Typical answers of models, for tests that parse every prefix. */
const TICK = "`";

export const corpus: string[] = [
  String.raw`The energy is

\[
E = mc^2
\] where \(m\) is the mass.

## Next

- a **list**
`,
  String.raw`Special variables of the shell:

$$ is the process ID.

$? is the exit status.

## Next

Text.
`,
  String.raw`| Item | Notes |
|---|---|
| A | one<br>two<br/>three |

H<sub>2</sub>O, x<sup>2</sup>
`,
  String.raw`| norm | value |
|---|---|
| $|x|$ | 3 |
| $P(A|B)$ | 4 |
| ${TICK}a | b${TICK} | 5 |
`,
  String.raw`Roses are red,
Violets are blue,
Sugar is sweet.
`,
  String.raw`**Wichtig:**sofort lesen. **Note :**texte. 含**「重点」**内容。**注意：**正文
`,
  String.raw`Points:
- **First**: a
- ${TICK}second${TICK}: b
`,
  String.raw`Compound interest pays *interest on interest*:

$$
A = P\,(1 + r)^n
$$

| Years | At 3 % |
|------:|-------:|
| 5 | $1,159 |

1. **First.** A line

2. Second, with code:

   ${TICK}${TICK}${TICK}sh
   echo hello
   ${TICK}${TICK}${TICK}

3. Third
   - **nested**: ${TICK}code${TICK}
   - [ ] a task
   - [x] done

${TICK}${TICK}${TICK}python
def f(x):

    return x
${TICK}${TICK}${TICK}

> A quotation
> - **with** a list

Heading
-------

The end, with $x$ and [a link](https://a.example).
`,
  String.raw`# A README

${TICK}${TICK}${TICK}markdown
# Title

${TICK}${TICK}${TICK}python
print(1)
${TICK}${TICK}${TICK}

## Usage

- **a**
${TICK}${TICK}${TICK}

After it, H<sub>2</sub>O and <kbd>Ctrl</kbd>.

<details>
<summary>More</summary>

Text.

</details>

<!-- a comment
of two lines -->

Then \[
x = \begin{cases} 1 & a \\ 2 & b \end{cases}
\] where \(x\) is a number.

\begin{align}
a &= b \\
c &= d
\end{align}

See the note[^1].

[^1]: **A note** with ${TICK}code${TICK}.
`,
  String.raw`1. **Compute the sum**
   \[
   \sum_{i=1}^n i = \frac{n(n+1)}{2}
   \]
2. **Check**:
   $$
   1 + 2 = 3
   $$
   so it holds.

* **A star**
* __b__

- - -

+ plus
+ more

a
= b

a
- b

**Bold:** text, **again:**text

| $|x|$ | b |
|---|---|
| ${TICK}a|b${TICK} | <br> |
`,
];

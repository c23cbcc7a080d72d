/** Links between the pages of the guide, as their words: the window has topics, not pages. */
export const withoutPageLinks = (markdown: string): string =>
  markdown.replace(/\[([^\]]+)\]\((?![a-z]+:)[^)]*\)/gu, "$1");

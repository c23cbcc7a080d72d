/** Supported languages, the common ones of highlight.js, with every name that a fence may use. */
const NAMES: [name: string, known: string][] = [
  ["Bash", "bash sh zsh"],
  ["C", "c h"],
  ["C#", "csharp cs c#"],
  ["C++", "cpp cc c++ h++ hpp hh hxx cxx"],
  ["CSS", "css"],
  ["Diff", "diff patch"],
  ["Go", "go golang"],
  ["GraphQL", "graphql gql"],
  ["HTML, XML", "xml html xhtml rss atom xjb xsd xsl plist wsf svg"],
  ["JSON", "json jsonc json5"],
  ["Java", "java jsp"],
  ["JavaScript", "javascript js jsx mjs cjs"],
  ["Kotlin", "kotlin kt kts ktm ktx"],
  ["Less", "less"],
  ["Lua", "lua pluto"],
  ["Makefile", "makefile mk mak make"],
  ["Markdown", "markdown md mkdown mkd"],
  ["Objective-C", "objectivec mm objc obj-c obj-c++ objective-c++"],
  ["PHP template", "php-template"],
  ["Perl", "perl pl pm"],
  ["Plain text", "plaintext text txt"],
  ["Python", "python py gyp ipython"],
  ["R", "r"],
  ["Ruby", "ruby rb gemspec podspec thor irb"],
  ["Rust", "rust rs"],
  ["SCSS", "scss"],
  ["SQL", "sql"],
  ["Shell Session", "shell console shellsession"],
  ["Swift", "swift"],
  ["TOML, also INI", "ini toml"],
  ["TypeScript", "typescript ts tsx mts cts"],
  ["Visual Basic .NET", "vbnet vb"],
  ["WebAssembly", "wasm"],
  ["YAML", "yaml yml"],
  ["php", "php"],
  ["python-repl", "python-repl pycon"],
];

const names = new Map(
  NAMES.flatMap(([name, known]) => known.split(" ").map((each) => [each, name] as const)),
);

/** Checks if code in this language can be highlighted. */
export function isKnownLanguage(language: string): boolean {
  return names.has(language);
}

/** Display name of a language: TypeScript for `ts`. */
export function languageName(language: string): string {
  if (language === "") return "Text";
  return names.get(language)?.split(",")[0] ?? language;
}

//! Search in texts of all scripts, with symbols and invisible characters.

use store::Store;

use crate::{chat, found};

/// Texts, with queries that match them and queries that do not.
const FOUND: &[(&str, &[&str], &[&str])] = &[
    // Chinese.
    (
        "请验证用户的身份，然后执行命令。",
        &[
            "验",
            "身份",
            "执行",
            "验证用户",
            "用户 命令",
            "\"执行命令\"",
            "执 行",
        ],
        &["执验", "行执", "身分", "\"命令执行\""],
    ),
    // Beyond the basic plane.
    (
        "𠮷野家で𠮟る",
        &["𠮷", "𠮷野", "野家", "𠮟"],
        &["家野", "叱"],
    ),
    // Japanese: ideographs, kana, both, and half width.
    (
        "東京タワーの写真をﾃﾞｰﾀで送って",
        &[
            "東京",
            "タワ",
            "タワー",
            "の",
            "写真",
            "データ",
            "デー",
            "ﾃﾞｰﾀ",
            "て",
        ],
        &["京東", "ーワ", "テータ"],
    ),
    ("がっこう", &["が", "か\u{3099}", "っこ"], &["か"]),
    // Korean: words with their endings, composed or not.
    (
        "문서검색을 시작합니다",
        &[
            "검색",
            "문서",
            "색",
            "시작",
            "검색을",
            "\u{1100}\u{1165}\u{11B7}\u{1109}\u{1162}\u{11A8}",
        ],
        &["색검", "을시작함"],
    ),
    // Beside Latin letters.
    (
        "GPU加速とPython3のコード",
        &[
            "gpu",
            "加速",
            "GPU加速",
            "python",
            "速とpy",
            "Python3のコード",
            "ード",
            "pu加",
        ],
        &["速加", "cpu加速"],
    ),
    // Symbols.
    (
        "C++ and C#, F#; don't use .NET or foo_bar(x) -> y, 100 % * 2",
        &[
            "C++", "c#", "f#", ".net", "NET", "foo_bar", "bar", "don't", "'", "*", "->", "%", "_",
            "(x)", "100%", "++",
        ],
        &["=>", "&", "++ &&", "🦅", "<-"],
    ),
    // Emoji, with joiners, skin tones, flags and variation selectors.
    (
        "Ein Adler 🦅 und 👩\u{200D}👩\u{200D}👧, 👍🏽 🇩🇪 ❤\u{FE0F}",
        &[
            "🦅",
            "👩\u{200D}👩\u{200D}👧",
            "👩",
            "👧",
            "👍",
            "👍🏽",
            "🇩🇪",
            "❤",
            "❤\u{FE0F}",
            "adler 🦅",
        ],
        &["🦉", "👨", "🇫🇷", "👍🏿"],
    ),
    // Case, accents and letters that are two.
    (
        "Die Straße in İstanbul, eﬀekt, Ångström; ΣΊΣΥΦΟΣ, Ёлка",
        &[
            "strasse",
            "STRASSE",
            "straße",
            "stras",
            "rass",
            "istanbul",
            "ISTANBUL",
            "effekt",
            "eﬀ",
            "angstrom",
            "σισυφος",
            "елка",
        ],
        &["strase", "estanbul"],
    ),
    ("Die STRASSE", &["straße", "Straß"], &[]),
    // Width.
    (
        "ｆｕｌｌ　ｗｉｄｔｈ １２３",
        &["full", "FULL width", "ull", "123", "ｆｕｌｌ"],
        &["fall"],
    ),
    ("half width", &["ｈａｌｆ", "ｗｉｄ"], &[]),
    // Invisible characters.
    (
        "Donau\u{AD}dampf\u{AD}schiff, zero\u{200B}width, wo\u{2060}rd, \u{FEFF}bom, \u{202E}left",
        &[
            "donaudampfschiff",
            "dampf",
            "zerowidth",
            "zero\u{200B}width",
            "word",
            "bom",
            "left",
            "audamp",
        ],
        &["schiffdampf"],
    ),
    // Unchanged behaviour.
    (
        "POL-358: a/b, file.md, NEAR(x), naïve l’été",
        &[
            "POL-358", "pol 358", "a/b", "file.md", "NEAR(", "near", "naive", "ete", "l'ete",
            "\"a b\"",
        ],
        &["358 pox", "\"b a\""],
    ),
];

#[test]
fn texts_of_all_scripts_are_found() {
    for (text, queries, others) in FOUND {
        let store = Store::in_memory().unwrap();
        let (id, message) = chat(&store, "0", text);
        let (_, _) = chat(&store, text, "0");
        for query in *queries {
            assert_eq!(
                found(&store, query),
                [None, Some(message)],
                "{query} in {text}"
            );
            let hits = store.search().find_in_chat(query, id, 9).unwrap();
            let snippet = &hits[0].snippet;
            assert!(snippet.contains('\u{E000}'), "{query} in {snippet}");
            let shown = snippet.replace(['\u{E000}', '\u{E001}', '…'], "");
            assert!(text.contains(&shown), "{shown} is not of {text}");
        }
        for query in *others {
            assert!(found(&store, query).is_empty(), "{query} in {text}");
        }
    }
}

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn any_part_of_a_message_finds_it() {
    let pieces = [
        "Straße",
        "maison",
        "été",
        "ｗｉｄｅ",
        "soft\u{AD}ly",
        "水",
        "问题",
        "カナ",
        "검색",
        "x",
        "42",
        "eﬀekt",
        "C++",
        "a_b",
        "🦅",
        "👩\u{200D}👧",
        "—",
        "don’t",
        "(",
        "…",
        "привет",
        "e\u{301}",
        "ﾃﾞ",
        "한",
    ];
    let mut random = Random(7);
    let store = Store::in_memory().unwrap();
    let mut texts = Vec::new();
    for n in 0..60 {
        let mut words = Vec::new();
        for _ in 0..8 {
            words.push(pieces[random.below(pieces.len())]);
        }
        let text = words.join(if n % 3 == 0 { "" } else { " " });
        let (chat, message) = chat(&store, "0", &text);
        texts.push((text, chat, message));
    }
    for (text, chat, message) in &texts {
        // Whole words and characters: from the beginning of one on.
        let begins: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| {
                let before = text[..*at].chars().next_back();
                let is_apart = before.is_none_or(|b| !b.is_alphanumeric() && !is_invisible(b));
                !is_invisible(*c) && (is_apart || is_cjk(*c))
            })
            .map(|(at, _)| at)
            .collect();
        for _ in 0..12 {
            let from = begins[random.below(begins.len())];
            let length = 1 + random.below(12);
            let marks = |c: &char| matches!(c, '\u{301}' | 'ﾞ');
            let rest: Vec<char> = text[from..].chars().collect();
            let follow = rest.iter().skip(length).take_while(|c| marks(c)).count();
            let query: String = rest.iter().take(length + follow).collect();
            if query.trim().is_empty() {
                continue;
            }
            let hits = store.search().find_in_chat(&query, *chat, 9).unwrap();
            let hits: Vec<_> = hits.iter().map(|hit| hit.message).collect();
            assert_eq!(hits, [*message], "{query:?} in {text:?}");
        }
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200D}' | '\u{301}' | 'ﾞ')
}

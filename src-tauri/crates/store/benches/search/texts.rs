//! Texts like those of chats: in several languages, with words as unevenly common as they are there.

/// Words of a language. The n-th most common one has a share of about 1/n.
const VOCABULARY: f64 = 50_000.0;

const ENGLISH: &str = "the of and to in is you that it for on are with as this have from or by what but not can your \
    which their about how when there use each other some would make like him into time look two more write see number \
    way could people than first water been call who oil now find long down day get come made may part question answer \
    because world information different language program function between important example however understand model \
    computer reading interest compound migration planet explain table picture sentence paragraph anything everything";
const GERMAN: &str = "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an \
    werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber \
    vor zur bis mehr durch man sein wurde Frage Antwort höflich Brief größer möglich Sprache Übung während Wörter \
    Beispiel Erklärung verstehen Geschwindigkeit Zusammenhang Wintergoldhähnchen";
const FRENCH: &str = "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont \
    la avec été mais comme on tout nous sa fait être aussi leur bien peut ces question réponse eau monde exemple langue \
    français élève créer âge où très voilà première différence expliquer phrase tableau naïve Besançon";
const SPANISH: &str = "de la que el en y a los se del las un por con no una su para es al lo como más o pero sus le ha \
    me si sin sobre este ya entre cuando todo esta ser son dos también fue había pregunta respuesta agua mundo ejemplo \
    lengua año niño corazón explicación diferencia programa función";
const RUSSIAN: &str = "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой вопрос \
    ответ вода мир пример язык объяснить таблица разница программа функция когда человек время слово предложение";
const CHINESE: &str = "的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年 得 就 \
    那 要 下 以 生 会 自 着 去 之 过 家 学 对 可 她 里 后 小 么 心 多 天 而 能 好 都 然 没 日 于 起 还 发 成 事 只 作 当 想 看 \
    文 无 开 手 十 用 主 行 方 又 如 前 所 本 见 经 头 面 公 同 三 已 老 从 动 两 长 知 民 样 现 分 将 外 但 身 些 与 高 意 进 \
    水 问 题 答 世 界 语 言 例 解 释 程 序 函 数";

/// The language of a chat.
#[derive(Clone, Copy)]
pub enum Language {
    Of(&'static str),
    Chinese,
}

impl Language {
    /// Half of the chats are in English.
    pub fn of(chat: usize) -> Language {
        match chat % 10 {
            5 | 6 => Language::Of(GERMAN),
            7 => Language::Of(if chat % 20 < 10 { FRENCH } else { SPANISH }),
            8 => Language::Of(RUSSIAN),
            9 => Language::Chinese,
            _ => Language::Of(ENGLISH),
        }
    }

    pub fn sentence(self, random: &mut Random, words: usize) -> String {
        match self {
            Language::Of(list) => {
                let list: Vec<&str> = list.split_whitespace().collect();
                let mut text = Vec::with_capacity(words);
                for n in 0..words {
                    let mut word = word(&list, random.rank());
                    if n % 12 == 11 {
                        word.push('.');
                    }
                    text.push(word);
                }
                text.join(" ")
            }
            Language::Chinese => {
                let list: Vec<&str> = CHINESE.split_whitespace().collect();
                let mut text = String::new();
                for n in 0..words * 2 {
                    text += list[random.rank() as usize % list.len()];
                    if n % 14 == 13 {
                        text.push('。');
                    }
                }
                text
            }
        }
    }
}

/// Returns the word of a rank, the same each time: one of the list, or the beginning of one and the end of another.
fn word(list: &[&str], rank: u64) -> String {
    let rank = rank as usize;
    if let Some(word) = list.get(rank) {
        return (*word).to_owned();
    }
    let (head, tail) = (
        list[rank % list.len()],
        list[rank / list.len() % list.len()],
    );
    let head: String = head.chars().take(2 + rank % 5).collect();
    let tail: String = tail.chars().skip(rank % 2).collect();
    let third: String = list[rank / 7 % list.len()].chars().take(rank % 3).collect();
    head + &third + &tail
}

/// Returns a word of few messages.
pub fn rare_word() -> String {
    let list: Vec<&str> = ENGLISH.split_whitespace().collect();
    let long = |rank: &u64| word(&list, *rank).chars().count() >= 8;
    let rank = (45_000..).find(long).unwrap_or_default();
    word(&list, rank)
}

/// Reproducible random numbers.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }
}

impl Random {
    fn rank(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = (self.0 >> 33) as f64 / 2_f64.powi(31);
        VOCABULARY.powf(share) as u64 - 1
    }
}

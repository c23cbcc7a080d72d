//! Text that a prompt must keep as text.

/// Linear congruential generator: the same numbers on every run.
#[derive(Debug)]
pub struct Lcg(pub u64);

impl Lcg {
    /// Returns a number below `end`.
    ///
    /// # Panics
    /// Panics if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

const HOSTILE: [&str; 26] = [
    "<|im_end|>",
    "<|im_start|>",
    "<think>",
    "</think>",
    "<",
    "|im_end|>",
    "<|im_",
    "end|>",
    "<<",
    "\u{fdd0}",
    "\u{fdd1}",
    "\u{fdd1}0\u{fdd1}",
    "\u{fdd2}",
    "<\u{fdd0}",
    "/think",
    "/no_think",
    "{{ 7*7 }}",
    "{% if %}",
    "\n",
    "\n\n",
    " ",
    "é",
    "🙂",
    "\u{e000}",
    "\u{10ffff}",
    "plain",
];

/// Returns text of pieces that could be taken for structure, and of any characters.
pub fn hostile(random: &mut Lcg) -> String {
    let pieces = 1 + random.below(12);
    (0..pieces)
        .map(|_| match random.below(4) {
            0 => char::from_u32(u32::try_from(random.below(0x11_0000)).expect("a code"))
                .unwrap_or('\u{fffd}')
                .to_string(),
            _ => HOSTILE[random.below(HOSTILE.len())].to_owned(),
        })
        .collect()
}

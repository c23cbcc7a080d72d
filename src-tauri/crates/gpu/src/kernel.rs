//! A kernel as plain data, and its WGSL source.

use std::fmt::Write;

use crate::error::GpuError;
use crate::weight_format::WeightFormat;

/// A file of `wgsl/` and its specialisation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The file without its extension; the label in GPU debuggers.
    pub file: &'static str,
    /// The file of `#include $EPILOGUE`.
    pub epilogue: &'static str,
    /// Flags that `#if` tests.
    pub flags: Vec<&'static str>,
    /// Constants: name and WGSL literal.
    pub constants: Vec<(&'static str, String)>,
    /// The formats of the weights 0, 1, 2.
    pub weights: Vec<WeightFormat>,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Every file of `wgsl/`.
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("wgsl/", $name, ".wgsl")))),*];
    };
}

files![
    "activations",
    "attention",
    "attention_chunks",
    "attention_merge",
    "bf16",
    "dot_group",
    "embed",
    "epilogue_rope_store_kv",
    "epilogue_store",
    "epilogue_swiglu",
    "f16",
    "group_float",
    "group_int",
    "inverse_rms",
    "iq4_values",
    "iq4nl",
    "iq4xs",
    "invocation",
    "k_quant_scales",
    "kv_read",
    "kv_write",
    "mat_mul",
    "mat_mul_coop",
    "mat_vec",
    "q4k",
    "q5k",
    "q6k",
    "q8",
    "qkv_bias_norm",
    "read_bandwidth",
    "rms_norm",
    "rope_store_kv",
    "sample",
    "sample_params",
    "sample_reduce",
    "stacked_rows",
    "store_activations",
    "weights_16bit",
];

impl Kernel {
    /// The kernel of `file` with no flag set.
    pub fn new(file: &'static str) -> Kernel {
        Kernel {
            file,
            epilogue: "",
            flags: Vec::new(),
            constants: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Sets a flag if `condition` holds.
    #[must_use]
    pub fn flag(mut self, name: &'static str, condition: bool) -> Kernel {
        if condition {
            self.flags.push(name);
        }
        self
    }

    /// Adds a constant of type `u32`.
    #[must_use]
    pub fn number(mut self, name: &'static str, value: usize) -> Kernel {
        self.constants.push((name, format!("{value}u")));
        self
    }

    /// Adds a constant of type `f32`.
    #[must_use]
    pub fn float(mut self, name: &'static str, value: f32) -> Kernel {
        self.constants.push((name, format!("{value:e}f")));
        self
    }

    /// Returns the WGSL source.
    ///
    /// Lines that begin with `#` are directives of the preprocessor: `#if FLAG` … `#elif FLAG` … `#else` … `#endif`,
    /// `#include FILE NAME=VALUE` with `$NAME` replaced, `#each NAME=COUNT …` … `#end`, which repeats the lines between
    /// for all values of the names below their counts (numbers or constants), and `#weights`, which includes the
    /// decoders of the weights' formats. `@binding(#)` counts up, and WGSL's own directives move to the top.
    ///
    /// # Errors
    /// Fails if an `#include` names no file, or an `#each` no count.
    pub fn source(&self) -> Result<String, GpuError> {
        let mut text = String::new();
        for (name, literal) in &self.constants {
            // Writing to a string does not fail.
            let _ = writeln!(text, "const {name} = {literal};");
        }
        self.include(self.file, &[], &mut text)?;
        Ok(directives_first(&numbered(&text)))
    }

    fn include(
        &self,
        file: &str,
        arguments: &[(&str, &str)],
        out: &mut String,
    ) -> Result<(), GpuError> {
        let (_, text) = FILES
            .iter()
            .find(|(name, _)| *name == file)
            .ok_or_else(|| GpuError::Unsupported(format!("no kernel file {file}")))?;
        self.expand(text, arguments, out)
    }

    fn expand(
        &self,
        text: &str,
        arguments: &[(&str, &str)],
        out: &mut String,
    ) -> Result<(), GpuError> {
        // One entry per open #if: true once a branch was taken, and true if the current one is.
        let mut open: Vec<(bool, bool)> = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = arguments
                .iter()
                .fold(line.to_owned(), |line, (name, value)| {
                    line.replace(&format!("${name}"), value)
                })
                .replace("$EPILOGUE", self.epilogue);
            let mut words = line.split_whitespace();
            let holds = |flag: Option<&str>| flag.is_some_and(|flag| self.flags.contains(&flag));
            match words.next() {
                Some("#if") => {
                    let now = holds(words.next());
                    open.push((now, now));
                }
                Some("#elif") => {
                    let now = holds(words.next());
                    if let Some((taken, active)) = open.last_mut() {
                        *active = now && !*taken;
                        *taken |= now;
                    }
                }
                Some("#else") => {
                    if let Some((taken, active)) = open.last_mut() {
                        *active = !*taken;
                    }
                }
                Some("#endif") => {
                    open.pop();
                }
                _ if open.iter().any(|(_, active)| !active) => {}
                Some("#include") => {
                    let file = words.next().unwrap_or_default();
                    let arguments: Vec<(&str, &str)> =
                        words.filter_map(|word| word.split_once('=')).collect();
                    self.include(file, &arguments, out)?;
                }
                Some("#each") => {
                    let names: Vec<&str> = words.collect();
                    let body: Vec<&str> = lines.by_ref().take_while(|it| *it != "#end").collect();
                    self.repeat(&body.join("\n"), &names, &[], out)?;
                }
                Some("#weights") => self.decoders(out)?,
                _ => {
                    out.push_str(&line);
                    out.push('\n');
                }
            }
        }
        Ok(())
    }

    /// A number, or the value of a constant.
    fn count(&self, text: &str) -> Result<usize, GpuError> {
        let constant = self.constants.iter().find(|(name, _)| *name == text);
        let value = constant.map_or(text, |(_, literal)| literal.trim_end_matches('u'));
        let unknown = |_| GpuError::Unsupported(format!("no count {text}"));
        value.parse().map_err(unknown)
    }

    /// `text` for all values of `names` below their counts.
    fn repeat(
        &self,
        text: &str,
        names: &[&str],
        arguments: &[(&str, &str)],
        out: &mut String,
    ) -> Result<(), GpuError> {
        let Some((name, others)) = names.split_first() else {
            return self.expand(text, arguments, out);
        };
        let (name, count) = name.split_once('=').unwrap_or((*name, ""));
        let count = self.count(count)?;
        (0..count).try_for_each(|value| {
            let value = value.to_string();
            let arguments = [arguments, &[(name, &*value)]].concat();
            self.repeat(text, others, &arguments, out)
        })
    }

    fn decoders(&self, out: &mut String) -> Result<(), GpuError> {
        let floats = self.weights.iter().any(|format| format.is_float());
        self.include(if floats { "group_float" } else { "group_int" }, &[], out)?;
        for (index, format) in self.weights.iter().enumerate() {
            self.include(format.file(), &[("M", &index.to_string())], out)?;
        }
        Ok(())
    }
}

/// `text` with `@binding(#)` numbered from 0.
fn numbered(text: &str) -> String {
    let mut parts = text.split("@binding(#)");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        let _ = write!(out, "@binding({index}){part}");
    }
    out
}

/// `text` with WGSL's directives before all other lines, as the language requires.
fn directives_first(text: &str) -> String {
    let is_directive = |line: &&str| line.starts_with("enable ") || line.starts_with("diagnostic(");
    let (first, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(is_directive);
    [first, rest].concat().join("\n")
}

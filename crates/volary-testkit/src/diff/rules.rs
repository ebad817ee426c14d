//! What the two sides are held to, and how they failed.

use volary_mem::MemOptions;

/// What the model must be told beside the volume's caps.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The names that operations use.
    pub names: Vec<String>,
    /// Makes the same of names that are the same; see [`MemOptions::fold`].
    pub fold: fn(&[u8]) -> Vec<u8>,
    /// Names that are refused; see [`MemOptions::refuses`].
    pub refuses: fn(&[u8]) -> bool,
    /// Whose times of last change are compared.
    pub times: Times,
    /// Owner, group, and the modes of files and directories where the volume
    /// keeps none.
    pub owner: (u32, u32, u32, u32),
}

/// Whose times of last change are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Everybody's.
    All,
    /// Not directories': the format does not move them with their entries.
    Files,
    /// Nobody's: the volume goes by a clock of its own.
    None,
}

impl Default for Rules {
    fn default() -> Self {
        let model = MemOptions::default();
        Self {
            names: NAMES.iter().map(ToString::to_string).collect(),
            fold: model.fold,
            refuses: model.refuses,
            times: Times::All,
            owner: (model.uid, model.gid, model.file_mode, model.dir_mode),
        }
    }
}

/// Names that are likely to be confused with one another.
pub const NAMES: &[&str] = &[
    "a",
    "A",
    "readme.txt",
    "README.TXT",
    "Readme.Txt",
    "a long name of many words.text",
    "A Long Name Of Many Words.Text",
    "a long name of many words.tex",
    ".hidden",
    "two.dots.in it",
    "grün",
    "GRÜN",
    "日本語の名前.txt",
    "UPPER",
    "lower.tar.gz",
    "trailing.",
    "trailing ",
    "trailing",
    "co:lon",
    "x\u{1}y",
    "plus+comma,semi;.[1]",
    "a name that is just a little longer than all the others are, to need more than five slots",
];

/// What went wrong, and where.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// Index of the operation; the number of operations for the end.
    pub(super) at: usize,
    pub(super) words: String,
}

//! Requests to [`Format::dump`](volary_core::Format::dump), and the output of its text.
//!
//! A driver lists its topics. A topic's value says which argument follows its name: none for "", an
//! optional word for `[WORD]`, and one word for anything else. All other requests answer `Invalid`,
//! naming the known topics, before the device is read.

use std::fmt;
use volary_core::{Error, Kind, OptionSpec, Options, Result, escape};

/// A request to show one structure.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The name of the topic.
    pub topic: &'static str,
    /// The argument after the topic.
    arg: Option<&'a str>,
    value: &'static str,
}

impl<'a> Asked<'a> {
    /// Parses a request.
    ///
    /// # Errors
    /// `Invalid` for an unknown topic, a missing argument, or too many.
    pub fn new(topics: &'static [OptionSpec], what: &'a [String]) -> Result<Self> {
        let mut words = what.iter().map(String::as_str);
        let topic = words.next().unwrap_or_default();
        let (arg, more) = (words.next(), words.next());
        let found = topics.iter().find(|known| known.name == topic);
        let found = found.filter(|known| match arg {
            Some(_) => !known.value.is_empty() && more.is_none(),
            None => known.value.is_empty() || known.value.starts_with('['),
        });
        let known = found.ok_or_else(|| unknown(topics, what))?;
        Ok(Self {
            topic: known.name,
            arg,
            value: known.value,
        })
    }

    /// Returns the topic's argument, if there is one.
    pub fn word(&self) -> Option<&'a str> {
        self.arg
    }

    /// Returns the argument as a number, if there is one: `12`, `0x1000`.
    ///
    /// # Errors
    /// `Invalid` if the argument is no number, or too large.
    pub fn number<N: TryFrom<u64>>(&self) -> Result<Option<N>> {
        self.arg.map(|word| self.parse(word)).transpose()
    }

    /// Returns the argument of a topic that needs a number.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn needed<N: TryFrom<u64>>(&self) -> Result<N> {
        self.parse(self.arg.unwrap_or_default())
    }

    fn parse<N: TryFrom<u64>>(&self, word: &str) -> Result<N> {
        number(word).ok_or_else(|| {
            let (topic, value) = (self.topic, self.value);
            let word = escape(word.as_bytes());
            let words = format!("cannot dump '{topic} {word}': {topic} {value} takes a number");
            Error::note(Kind::Invalid, words)
        })
    }
}

/// Parses a number: `12`, `0x1000`, `4k`.
pub fn number<N: TryFrom<u64>>(word: &str) -> Option<N> {
    Options::parse_size(word).and_then(|n| N::try_from(n).ok())
}

/// Returns `Invalid`, naming the known topics.
fn unknown(topics: &[OptionSpec], what: &[String]) -> Error {
    let known: Vec<String> = topics
        .iter()
        .map(|topic| format!("{} {}", topic.name, topic.value).trim().to_owned())
        .collect();
    let words = format!(
        "cannot dump '{}'; there are: {}",
        escape(what.join(" ").as_bytes()),
        known.join(", ")
    );
    Error::note(Kind::Invalid, words)
}

/// The output of the text.
pub struct Out<'a>(&'a mut dyn fmt::Write);

impl<'a> Out<'a> {
    /// Returns an output that writes to `out`.
    pub fn new(out: &'a mut dyn fmt::Write) -> Self {
        Self(out)
    }

    /// Writes a line.
    ///
    /// # Errors
    /// `Io`.
    pub fn line(&mut self, words: fmt::Arguments<'_>) -> Result<()> {
        let written = self.0.write_fmt(words);
        is_written(written.and_then(|()| self.0.write_char('\n')))
    }

    /// Writes lines.
    ///
    /// # Errors
    /// `Io`.
    pub fn lines(&mut self, lines: &[String]) -> Result<()> {
        lines
            .iter()
            .try_for_each(|line| self.line(format_args!("{line}")))
    }
}

/// Turns a failed write of text into `Io`.
///
/// # Errors
/// `Io`.
pub fn is_written(done: fmt::Result) -> Result<()> {
    done.map_err(|_| Error::note(Kind::Io, "the output cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn topic(name: &'static str, value: &'static str) -> OptionSpec {
        OptionSpec {
            name,
            value,
            help: "",
        }
    }

    const TOPICS: &[OptionSpec] = &[
        topic("root", ""),
        topic("table", "[PAGE]"),
        topic("inode", "NUMBER"),
    ];

    fn words(what: &str) -> Vec<String> {
        what.split_terminator(' ').map(str::to_owned).collect()
    }

    fn refusal(what: &str) -> String {
        let what = words(what);
        let e = Asked::new(TOPICS, &what).unwrap_err();
        assert_eq!(e, Kind::Invalid);
        e.to_string()
    }

    #[test]
    fn a_topic_has_the_words_that_its_value_says() {
        for (what, number) in [
            ("root", None),
            ("table", None),
            ("table 3", Some(3)),
            ("inode 0x10", Some(16)),
        ] {
            let what = words(what);
            let asked = Asked::new(TOPICS, &what).unwrap();
            assert_eq!(
                (asked.topic, asked.number().unwrap()),
                (what[0].as_str(), number)
            );
        }
    }

    #[test]
    fn all_else_is_refused_with_what_there_is() {
        for what in ["", "roots", "root 1", "table 1 2", "inode", "inode 1 2"] {
            let refusal = refusal(what);
            assert!(
                refusal.contains(&format!("cannot dump '{what}'")),
                "{refusal}"
            );
            assert!(refusal.contains("there are: root, table [PAGE], inode NUMBER"));
        }
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert!(!refusal("\u{1b}[2J").contains('\u{1b}'));
        let what = words("inode \u{1b}");
        let e = Asked::new(TOPICS, &what)
            .unwrap()
            .needed::<u64>()
            .unwrap_err();
        assert!(!e.to_string().contains('\u{1b}'));
    }

    #[test]
    fn a_number_must_be_one_and_fit() {
        for (word, fits) in [("255", true), ("256", false), ("-1", false), ("x", false)] {
            let what = words(&format!("inode {word}"));
            let asked = Asked::new(TOPICS, &what).unwrap();
            assert_eq!(asked.needed::<u8>().is_ok(), fits, "{word}");
            let refused = asked.number::<u8>().map_err(|e| e.kind());
            assert!(fits || refused == Err(Kind::Invalid), "{word}");
        }
    }

    #[test]
    fn output_that_ends_is_io() {
        struct Full;
        impl fmt::Write for Full {
            fn write_str(&mut self, _: &str) -> fmt::Result {
                Err(fmt::Error)
            }
        }
        assert_eq!(
            Out::new(&mut Full).lines(&[String::new()]).unwrap_err(),
            Kind::Io
        );
        let mut text = String::new();
        Out::new(&mut text)
            .lines(&["a".into(), "b".into()])
            .unwrap();
        assert_eq!(text, "a\nb\n");
    }
}

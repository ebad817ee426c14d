//! `--grep`: lines that a regular expression fits.

use super::sink::{Begun, Sink, To, zeros};
use crate::exit::{Done, Fail};
use crate::out;
use regex::bytes::{Regex, RegexBuilder};
use volary::bulk::{File, Part};

/// The longest line that is looked at whole, in bytes: a longer one is cut there.
const LINE_MAX: usize = 1 << 20;

/// # Errors
/// Of one that is none.
pub(super) fn expression(text: &str) -> Done<Regex> {
    let built = RegexBuilder::new(text).multi_line(true).build();
    built.map_err(|e| {
        let words = e.to_string();
        let last = words.lines().last().unwrap_or_default().trim();
        Fail::usage(format!("--grep: {}", volary::escape(last.as_bytes())))
    })
}

/// Prints lines.
pub(super) struct Grep {
    expression: Regex,
    begun: Begun<Text>,
}

/// A large file that is being looked through.
#[derive(Default)]
struct Text {
    /// The line that has not ended.
    rest: Vec<u8>,
    /// Lines that fit, to be printed at its end.
    found: Vec<u8>,
    is_binary: bool,
}

/// What is found in one file and not yet printed, at most.
const FOUND_MAX: usize = 4 << 20;

impl Grep {
    pub(super) fn new(expression: Regex) -> Self {
        Self {
            expression,
            begun: Begun::default(),
        }
    }

    /// Looks at whole lines.
    fn look(&self, name: &[u8], bytes: &[u8], text: &mut Text) {
        if bytes.contains(&0) {
            // As grep has it: its lines are not for terminals.
            text.is_binary = true;
        }
        if !self.expression.is_match(bytes) {
            return;
        }
        for line in bytes.split(|b| *b == b'\n') {
            if self.expression.is_match(line) {
                push(&mut text.found, name, line);
            }
        }
    }

    /// Looks at what has come, but for the line that has not ended.
    fn more(&self, name: &[u8], bytes: &[u8], text: &mut Text) {
        let end = bytes.iter().rposition(|b| *b == b'\n');
        let Some(end) = end else {
            text.rest.extend_from_slice(bytes);
            while text.rest.len() > LINE_MAX {
                let rest = text.rest.split_off(LINE_MAX);
                let line = std::mem::replace(&mut text.rest, rest);
                self.look(name, &line, text);
            }
            return;
        };
        let (whole, rest) = bytes.split_at(end);
        let mut first = std::mem::take(&mut text.rest);
        if first.is_empty() {
            self.look(name, whole, text);
        } else {
            first.extend_from_slice(whole);
            self.look(name, &first, text);
        }
        text.rest = rest.get(1..).unwrap_or_default().to_vec();
    }

    fn print(&self, to: &To<'_>, file: &File<'_>, text: &Text) -> Done {
        if to.report.is_json() {
            return match text.found.is_empty() {
                true => Ok(()),
                false => to.done(file, None),
            };
        }
        if text.is_binary && !text.found.is_empty() {
            let mut line = Vec::new();
            out::push_name(&mut line, &to.names.of(file));
            line.extend_from_slice(b": a binary file fits\n");
            return to.report.print(&line);
        }
        to.report.print(&text.found)
    }

    /// Prints what was found so far, so that it does not grow without bound.
    fn relieve(&self, to: &To<'_>, file: &File<'_>, text: &mut Text) -> Done {
        if text.found.len() < FOUND_MAX {
            return Ok(());
        }
        if text.is_binary {
            text.found.truncate(1);
            return Ok(());
        }
        self.print(to, file, text)?;
        text.found.clear();
        Ok(())
    }
}

/// `name:line`. What would do something on a terminal is escaped.
fn push(found: &mut Vec<u8>, name: &[u8], line: &[u8]) {
    out::push_name(found, name);
    found.push(b':');
    match out::is_terminal() {
        true => out::push(found, &volary::escape(line)),
        false => found.extend_from_slice(line),
    }
    found.push(b'\n');
}

impl Sink for Grep {
    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done {
        let mut text = match part {
            Part::Node => return Ok(()),
            Part::Whole(_) | Part::Begin => Text::default(),
            _ => match self.begun.take() {
                Some(text) => text,
                None => return Ok(()),
            },
        };
        let name = to.names.of(file);
        match part {
            Part::Node | Part::Failed(_) | Part::Whole(b"") => return Ok(()),
            Part::Whole(bytes) => {
                let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                self.look(&name, bytes, &mut text);
                return self.print(to, file, &text);
            }
            Part::Begin => {}
            Part::Chunk { bytes, .. } => self.more(&name, bytes, &mut text),
            Part::Hole(range) => zeros(range.len.min(LINE_MAX as u64), |bytes| {
                self.more(&name, bytes, &mut text);
                Ok(())
            })?,
            Part::End => {
                let rest = std::mem::take(&mut text.rest);
                if !rest.is_empty() {
                    self.look(&name, &rest, &mut text);
                }
                return self.print(to, file, &text);
            }
        }
        self.relieve(to, file, &mut text)?;
        self.begun.put(text);
        Ok(())
    }
}

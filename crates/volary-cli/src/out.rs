//! Standard output: buffered, names escaped, lists as JSON, sizes for people.

use crate::exit::Done;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use volary::escape;

/// Standard output without a buffer of its own.
pub(crate) struct Raw;

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if crate::closed::is_stdout() {
            return Err(rustix::io::Errno::BADF.into());
        }
        let write = || rustix::io::write(rustix::stdio::stdout(), bytes);
        Ok(match is_terminal() {
            true => crate::progress::suspend(write),
            false => write(),
        }?)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Buffered standard output. [`end`] must be called, so that an error of
/// the last write is seen.
pub(crate) type Out = BufWriter<Raw>;

/// Room for what is printed, in bytes.
const BUFFER: usize = 64 << 10;

/// Buffered standard output.
pub(crate) fn out() -> Out {
    BufWriter::with_capacity(BUFFER, Raw)
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    rustix::termios::isatty(rustix::stdio::stdout())
}

/// Returns whether what goes to standard output is in colours: as `NO_COLOR`, `CLICOLOR_FORCE` and
/// `CLICOLOR` say, in this order; else, if it is a terminal that has any.
pub(crate) fn is_coloured() -> bool {
    coloured(|name| std::env::var_os(name), is_terminal())
}

fn coloured(variable: impl Fn(&str) -> Option<OsString>, is_terminal: bool) -> bool {
    let is = |name, word| variable(name).is_some_and(|value| value == word);
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("NO_COLOR") {
        return false;
    }
    if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
        return true;
    }
    let has_any = is_set("TERM") && !is("TERM", "dumb");
    is_terminal && has_any && !is("CLICOLOR", "0")
}

/// Columns of the terminal on standard output; 80 if there is none.
pub(crate) fn width() -> usize {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

/// Appends a name, safe to print; see [`volary::escape`].
pub(crate) fn push_name(line: &mut Vec<u8>, name: &[u8]) {
    let is_plain = |b: &u8| matches!(b, b' '..=b'~') && *b != b'\\';
    if name.iter().all(is_plain) {
        line.extend_from_slice(name);
    } else {
        push(line, &escape(name));
    }
}

/// Appends what `what` displays.
pub(crate) fn push(line: &mut Vec<u8>, what: &dyn std::fmt::Display) {
    // Writing to a vector does not fail.
    let _ = write!(line, "{what}");
}

/// Prints a value as JSON, and ends the line.
///
/// # Errors
/// Of standard output.
pub(crate) fn json(out: &mut Out, value: &impl Serialize) -> Done {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// A JSON array, printed while it comes: one element a line.
pub(crate) struct List {
    empty: bool,
}

impl List {
    /// Opens the array.
    pub(crate) fn begin(out: &mut Out) -> Done<Self> {
        out.write_all(b"[")?;
        Ok(Self { empty: true })
    }

    /// One element.
    pub(crate) fn push(&mut self, out: &mut Out, value: &impl Serialize) -> Done {
        out.write_all(if self.empty { b"\n" } else { b",\n" })?;
        self.empty = false;
        Ok(serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?)
    }

    /// Closes it.
    pub(crate) fn end(self, out: &mut Out) -> Done {
        Ok(out.write_all(if self.empty { b"]\n" } else { b"\n]\n" })?)
    }
}

/// Returns a size for people, as `ls -h` and `du -h` print it: `512`, `1.5K`, `64M`.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    tenths = tenths.div_ceil(1024);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths = tenths.div_ceil(1024);
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"");
    if tenths < 100 {
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    } else {
        format!("{}{name}", tenths.div_ceil(10))
    }
}

/// Formats a size: as a number of bytes, or with a unit if `for_people`.
pub(crate) fn size(bytes: u64, for_people: bool) -> String {
    if for_people {
        human(bytes)
    } else {
        bytes.to_string()
    }
}

/// Lines in columns: each column as wide as its widest cell, numbers to the
/// right where `right` says so.
pub(crate) fn columns(rows: &[Vec<String>], right: &[bool]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| cells(s)).max();
    let widths: Vec<usize> = (0..count).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (c, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width.saturating_sub(cells(cell)));
            let to_right = right.get(c).copied().unwrap_or(false);
            let (before, after) = if to_right {
                (pad.as_str(), "")
            } else {
                ("", pad.as_str())
            };
            line.extend([before, cell, after, "  "]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Columns of a terminal that a text takes.
pub(crate) fn cells(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Ends the output.
///
/// # Errors
/// Of standard output.
pub(crate) fn end(mut out: Out) -> Done {
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_up_as_coreutils_have_it() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (1536, "1.5K"),
            (10 << 10, "10K"),
            ((10 << 10) + 1, "11K"),
            (64 << 20, "64M"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    #[test]
    fn colours_are_for_terminals_that_have_any_unless_somebody_says_otherwise() {
        for (variables, with_terminal, without) in [
            ("", false, false),
            ("TERM=xterm", true, false),
            ("TERM=dumb", false, false),
            ("TERM=xterm NO_COLOR=1", false, false),
            ("TERM=xterm NO_COLOR=", true, false),
            ("TERM=dumb CLICOLOR_FORCE=1", true, true),
            ("TERM=xterm CLICOLOR_FORCE=0", true, false),
            ("TERM=xterm CLICOLOR=0", false, false),
            ("TERM=xterm CLICOLOR_FORCE=1 NO_COLOR=1", false, false),
        ] {
            let variable = |name: &str| {
                let mut words = variables.split(' ').filter_map(|word| word.split_once('='));
                words
                    .find(|(found, _)| *found == name)
                    .map(|(_, v)| v.into())
            };
            let found = [true, false].map(|is_terminal| coloured(variable, is_terminal));
            assert_eq!(found, [with_terminal, without], "{variables}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "1"], ["grün", "200"]].map(|r| r.map(String::from).to_vec());
        assert_eq!(columns(&rows, &[false, true]), "a       1\ngrün  200\n");
    }

    #[test]
    fn names_are_escaped_and_plain_ones_are_left() {
        for (name, text) in [
            (&b"a b"[..], "a b"),
            (b"\x1b[2J", "\\u{1b}[2J"),
            (b"\\", "\\\\"),
        ] {
            let mut line = Vec::new();
            push_name(&mut line, name);
            assert_eq!(line, text.as_bytes());
        }
    }
}

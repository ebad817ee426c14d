//! Escaping: the one way in which names are printed.

use std::fmt;

/// Returns bytes from a disk or a wire in a form that is safe to print on a terminal. Valid UTF-8
/// stays as it is. Control characters, backslash and all other bytes become `\n`, `\\` or `\x1b`.
/// Distinct bytes print distinctly.
pub fn escape(bytes: &[u8]) -> Escaped<'_> {
    Escaped(bytes)
}

/// The most characters that [`escape_short`] keeps.
const SHORT: usize = 64;

/// Returns the [`escape`]d bytes, cut after 64 characters, with `…` for the rest. It is for log
/// lines part of which somebody else chooses.
pub fn escape_short(bytes: &[u8]) -> String {
    // Each escaped character comes from at most four bytes.
    let begin = bytes.get(..SHORT * 4).unwrap_or(bytes);
    let text = escape(begin).to_string();
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// See [`escape`].
#[derive(Clone, Copy)]
pub struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    c if is_unsafe(c) => write!(f, "{}", c.escape_unicode())?,
                    c => f.write_char(c)?,
                }
            }
            for b in chunk.invalid() {
                write!(f, "\\x{b:02x}")?;
            }
        }
        Ok(())
    }
}

/// Characters that move the cursor, hide text or change its direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(super::escape_short(b"a\n"), "a\\n");
        let long = super::escape_short(&[b'x'; 5000]);
        assert_eq!(long, format!("{}…", "x".repeat(64)));
        let long = super::escape_short("ü".repeat(64).as_bytes());
        assert_eq!(long, "ü".repeat(64));
        assert!(super::escape_short(&[0xff; 999]).chars().count() <= 65);
    }

    #[test]
    fn terminal_codes_do_not_reach_the_terminal() {
        assert_eq!(escape(b"a\x1b[2J").to_string(), "a\\u{1b}[2J");
        assert_eq!(escape("\u{202e}gpj".as_bytes()).to_string(), "\\u{202e}gpj");
        assert_eq!(escape(b"\xff\\").to_string(), "\\xff\\\\");
        assert_eq!(escape("grün".as_bytes()).to_string(), "grün");
    }
}

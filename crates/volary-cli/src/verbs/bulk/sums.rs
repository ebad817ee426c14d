//! `--sha256`, `--blake3`: sums, printed as sha256sum and b3sum print them.

use super::sink::{Begun, Sink, To, zeros};
use crate::exit::Done;
use crate::out;
use sha2::{Digest, Sha256};
use volary::bulk::{File, Part};

/// Which sums.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Sha256,
    Blake3,
}

/// A sum that is being made.
enum Hash {
    Sha256(Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Hash {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Sha256 => Self::Sha256(Sha256::new()),
            Kind::Blake3 => Self::Blake3(Box::default()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hash) => hash.update(bytes),
            Self::Blake3(hash) => _ = hash.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Sha256(hash) => hash.finalize().iter().map(|b| format!("{b:02x}")).collect(),
            Self::Blake3(hash) => hash.finalize().to_hex().to_string(),
        }
    }
}

/// Prints sums.
pub(super) struct Sums {
    kind: Kind,
    begun: Begun<Hash>,
}

impl Sums {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            begun: Begun::default(),
        }
    }

    fn print(&self, to: &To<'_>, file: &File<'_>, hash: Hash) -> Done {
        let sum = hash.finish();
        if to.report.is_json() {
            return to.done(file, Some(&sum));
        }
        to.report
            .print(&line(&sum, &to.names.of(file), out::is_terminal()))
    }
}

/// Returns a sum and a name. What would end the line is escaped as sha256sum and b3sum escape it, so that they can
/// check it; on a terminal, all that does something there is escaped.
fn line(sum: &str, name: &[u8], is_terminal: bool) -> Vec<u8> {
    if is_terminal {
        return format!("{sum}  {}\n", volary::escape(name)).into_bytes();
    }
    let mut line = Vec::with_capacity(sum.len() + name.len() + 4);
    if name.iter().any(|b| matches!(b, b'\\' | b'\n' | b'\r')) {
        line.push(b'\\');
    }
    line.extend_from_slice(sum.as_bytes());
    line.extend_from_slice(b"  ");
    for byte in name {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

impl Sink for Sums {
    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done {
        match part {
            Part::Node => Ok(()),
            Part::Whole(bytes) => {
                let mut hash = Hash::new(self.kind);
                hash.update(bytes);
                self.print(to, file, hash)
            }
            Part::Begin => {
                self.begun.put(Hash::new(self.kind));
                Ok(())
            }
            Part::Chunk { .. } | Part::Hole(_) => {
                let Some(mut hash) = self.begun.take() else {
                    return Ok(());
                };
                match part {
                    Part::Chunk { bytes, .. } => hash.update(bytes),
                    Part::Hole(range) => zeros(range.len, |bytes| {
                        hash.update(bytes);
                        Ok(())
                    })?,
                    _ => {}
                }
                self.begun.put(hash);
                Ok(())
            }
            Part::End => match self.begun.take() {
                Some(hash) => self.print(to, file, hash),
                None => Ok(()),
            },
            Part::Failed(_) => {
                self.begun.take();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn names_are_escaped_as_those_who_check_them_expect() {
        assert_eq!(line("12", b"a b", false), b"12  a b\n");
        assert_eq!(line("12", b"a\nb\\", false), b"\\12  a\\nb\\\\\n");
        assert_eq!(line("12", b"\x1b[2J", true), b"12  \\u{1b}[2J\n");
    }
}

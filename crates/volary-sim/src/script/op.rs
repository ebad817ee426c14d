//! The operations of a script, in words.

use std::fmt;
use std::str::FromStr;

/// One operation. Paths begin with a slash and have no spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Makes an empty file.
    Create(String),
    /// Writes this many bytes at an offset; both are multiples of 4.
    Write(String, u64, usize),
    /// Truncates or extends a file to this length, a multiple of 4.
    Truncate(String, u64),
    /// Removes a file.
    Unlink(String),
    /// Makes a directory.
    Mkdir(String),
    /// Removes a directory.
    Rmdir(String),
    /// Renames a file or directory, and replaces an existing target.
    Rename(String, String),
    /// Makes all changes durable.
    Sync,
    /// Opens a file or directory and makes its changes durable.
    Fsync(String),
    /// Ends the attachment. Only at the end of a script.
    Detach,
}

impl Op {
    /// Returns the operation with names cut to their last `max` bytes.
    #[must_use]
    pub fn with_names(&self, max: usize) -> Self {
        let short = |path: &String| {
            let names = path.split('/').map(|name| {
                let from = name.len().saturating_sub(max);
                name.get(from..).unwrap_or(name)
            });
            names.collect::<Vec<_>>().join("/")
        };
        match self {
            Self::Create(path) => Self::Create(short(path)),
            Self::Write(path, at, len) => Self::Write(short(path), *at, *len),
            Self::Truncate(path, len) => Self::Truncate(short(path), *len),
            Self::Unlink(path) => Self::Unlink(short(path)),
            Self::Mkdir(path) => Self::Mkdir(short(path)),
            Self::Rmdir(path) => Self::Rmdir(short(path)),
            Self::Rename(from, to) => Self::Rename(short(from), short(to)),
            Self::Fsync(path) => Self::Fsync(short(path)),
            Self::Sync | Self::Detach => self.clone(),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(path) => write!(f, "create {path}"),
            Self::Write(path, at, len) => write!(f, "write {path} {at} {len}"),
            Self::Truncate(path, len) => write!(f, "truncate {path} {len}"),
            Self::Unlink(path) => write!(f, "unlink {path}"),
            Self::Mkdir(path) => write!(f, "mkdir {path}"),
            Self::Rmdir(path) => write!(f, "rmdir {path}"),
            Self::Rename(from, to) => write!(f, "rename {from} {to}"),
            Self::Sync => f.write_str("sync"),
            Self::Fsync(path) => write!(f, "fsync {path}"),
            Self::Detach => f.write_str("detach"),
        }
    }
}

impl FromStr for Op {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let path = |p: &str| match p.starts_with('/') {
            true => Ok(p.to_owned()),
            false => Err(format!("'{text}': '{p}' is no path: it begins with /")),
        };
        let number = |n: &str| match n.parse::<u32>() {
            Ok(n) if n % 4 == 0 => Ok(n),
            _ => Err(format!("'{text}': '{n}' is no multiple of 4")),
        };
        Ok(match words[..] {
            ["create", p] => Self::Create(path(p)?),
            ["write", p, at, len] => {
                Self::Write(path(p)?, number(at)?.into(), number(len)? as usize)
            }
            ["truncate", p, len] => Self::Truncate(path(p)?, number(len)?.into()),
            ["unlink", p] => Self::Unlink(path(p)?),
            ["mkdir", p] => Self::Mkdir(path(p)?),
            ["rmdir", p] => Self::Rmdir(path(p)?),
            ["rename", from, to] => Self::Rename(path(from)?, path(to)?),
            ["sync"] => Self::Sync,
            ["fsync", p] => Self::Fsync(path(p)?),
            ["detach"] => Self::Detach,
            _ => {
                return Err(format!(
                    "'{text}' is no operation: create P, write P AT LEN, truncate P LEN, unlink P, \
                     mkdir P, rmdir P, rename P Q, sync, fsync P or detach"
                ));
            }
        })
    }
}

/// Operations, one after the other; in text, separated by `;`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ops(pub Vec<Op>);

impl fmt::Display for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, op) in self.0.iter().enumerate() {
            let before = if i == 0 { "" } else { "; " };
            write!(f, "{before}{op}")?;
        }
        Ok(())
    }
}

impl Ops {
    /// Returns the operations with names cut to their last `max` bytes.
    #[must_use]
    pub fn with_names(&self, max: usize) -> Self {
        Self(self.0.iter().map(|op| op.with_names(max)).collect())
    }
}

impl FromStr for Ops {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split(';').filter(|op| !op.trim().is_empty());
        words.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_names_that_are_too_long_the_ends_are_taken() {
        let op: Op = "rename /dir/a-long-name /other/x".parse().unwrap();
        assert_eq!(op.with_names(4).to_string(), "rename /dir/name /ther/x");
        assert_eq!(op.with_names(255), op);
    }

    #[test]
    fn a_script_reads_as_it_is_written() {
        let text = "create /a; write /a 0 600; truncate /a 4; mkdir /d; rename /a /d/b; \
                    fsync /d; unlink /d/b; rmdir /d; sync; detach";
        assert_eq!(text.parse::<Ops>().unwrap().to_string(), text);
        for (wrong, why) in [
            ("create a", "no path"),
            ("write /a 1 4", "multiple of 4"),
            ("remove /a", "no operation"),
        ] {
            let said = wrong.parse::<Ops>().unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}

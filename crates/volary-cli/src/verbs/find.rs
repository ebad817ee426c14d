//! `volary find`.

use crate::exit::{Done, Exit};
use crate::out::{self, List};
use crate::row::{self, NodeJson};
use crate::volumes::{self, At, AttachArgs, OptionArgs, Tally, Use};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use volary::Attr;

/// Lists all files and directories below a place that fit.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary find disk.img
  volary find disk.img:/docs -name '*.txt' -type f
The long options can be written with one dash, as find(1) has them. What an image is, which is
not recognised then, says -o type=KIND.")]
pub(crate) struct Find {
    /// VOLUME or VOLUME:/path
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<OsString>,
    /// Only names that this pattern fits: *, ?, [a-z]
    #[arg(long, value_name = "PATTERN")]
    name: Option<OsString>,
    /// The same, whatever the case
    #[arg(long, value_name = "PATTERN")]
    iname: Option<OsString>,
    /// Only these: f file, d directory, l symlink, p fifo, s socket, c and b devices
    #[arg(long = "type", value_name = "LETTER", value_parser = ["f", "d", "l", "p", "s", "c", "b"])]
    kind: Option<String>,
    /// No deeper than this
    #[arg(long, value_name = "LEVELS")]
    maxdepth: Option<usize>,
    /// Ends each name with a zero byte, and prints it as it is
    #[arg(long, conflicts_with = "json")]
    print0: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: OptionArgs,
}

/// Options of find(1) that are written with one dash.
pub(crate) const ONE_DASH: [&str; 5] = ["-name", "-iname", "-type", "-maxdepth", "-print0"];

impl Find {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        let mut list = if self.json {
            Some(List::begin(&mut out)?)
        } else {
            None
        };
        let mut tally = Tally::default();
        let mut line = Vec::new();
        let attach = AttachArgs::from(self.attach.clone());
        let exit = volumes::for_each(&self.places, &attach, Use::Look, |session, at| {
            let mut each = |at: &At, attr: &Attr, depth: usize| {
                if !self.fits(at, attr, depth) {
                    return Ok(());
                }
                if let Some(list) = &mut list {
                    let target = row::target(session, attr);
                    let json = NodeJson::new(&at.path, at.name(), attr, target.as_deref());
                    return list.push(&mut out, &json);
                }
                line.clear();
                if self.print0 {
                    line.extend_from_slice(&at.path);
                    line.push(0);
                } else {
                    out::push(&mut line, &at.source);
                    line.push(b':');
                    out::push_name(&mut line, &at.path);
                    line.push(b'\n');
                }
                Ok(out.write_all(&line)?)
            };
            row::descend(session, at, &mut each, &mut |fail| tally.take(Err(fail)))
        })?;
        if let Some(list) = list {
            list.end(&mut out)?;
        }
        out::end(out)?;
        Ok(if exit == Exit::Done {
            tally.exit()
        } else {
            exit
        })
    }

    fn fits(&self, at: &At, attr: &Attr, depth: usize) -> bool {
        let letter = self.kind.as_deref().and_then(|k| k.bytes().next());
        letter.is_none_or(|l| l == row::kind_letter(attr.kind))
            && self.maxdepth.is_none_or(|max| depth <= max)
            && self
                .name
                .as_deref()
                .is_none_or(|p| glob(p.as_bytes(), at.name()))
            && self.iname.as_deref().is_none_or(|p| {
                glob(
                    &p.as_bytes().to_ascii_lowercase(),
                    &at.name().to_ascii_lowercase(),
                )
            })
    }
}

/// Returns whether a name fits a pattern of `*`, `?`, `[a-z]`, `[!a-z]` and `\`. Takes
/// time in the product of the lengths at most.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (pattern, name);
    // Where to go on when what follows the last `*` does not fit.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = p {
            again = Some((rest, n));
            p = rest;
            continue;
        }
        let step = match n {
            [] if p.is_empty() => return true,
            [] => None,
            [byte, after @ ..] => one(p, *byte).map(|rest| (rest, after)),
        };
        match (step, again) {
            (Some((rest, after)), _) => (p, n) = (rest, after),
            (None, Some((star, [_, from @ ..]))) => {
                again = Some((star, from));
                (p, n) = (star, from);
            }
            _ => return false,
        }
    }
}

/// Returns what is left of the pattern after it took one byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', set @ ..] => match set.iter().skip(1).position(|b| *b == b']') {
            Some(end) => {
                let (set, rest) = set.split_at_checked(end + 1)?;
                in_set(set, byte).then(|| rest.get(1..).unwrap_or_default())
            }
            None => (byte == b'[').then_some(set),
        },
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
        [] => None,
    }
}

fn in_set(set: &[u8], byte: u8) -> bool {
    let (negated, mut set) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        set => (false, set),
    };
    let mut found = false;
    loop {
        set = match set {
            [from, b'-', to, rest @ ..] => {
                found |= (*from..=*to).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [] => return found != negated,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn patterns_fit_as_the_shell_has_them() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a*b*c", "aXbXbc", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x", "[]x", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("a", "ab", false),
            (
                "*a*a*a*a*a*a*a*b",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                false,
            ),
        ] {
            assert_eq!(
                glob(pattern.as_bytes(), name.as_bytes()),
                fits,
                "{pattern} {name}"
            );
        }
    }
}

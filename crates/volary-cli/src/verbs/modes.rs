//! Modes as `chmod` reads them.

use std::str::FromStr;

/// A change of permission bits: `755`, `u+x`, `go-w,a=r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModeChange {
    /// These bits.
    To(u32),
    /// One step after the other.
    Steps(Vec<Step>),
}

/// `WHO OPERATOR BITS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Mask of the bits that are spoken of; without any, the umask says which.
    who: Option<u32>,
    operator: u8,
    /// Letters of `rwxXstugo`.
    bits: Vec<u8>,
}

impl FromStr for ModeChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is no mode; write 755, or u+x,go-w");
        if text.bytes().all(|b| b.is_ascii_digit()) {
            let bits = u32::from_str_radix(text, 8).map_err(|_| bad())?;
            return if bits <= 0o7777 {
                Ok(Self::To(bits))
            } else {
                Err(bad())
            };
        }
        let mut steps = Vec::new();
        for clause in text.split(',') {
            steps_of(clause.as_bytes(), &mut steps).ok_or_else(bad)?;
        }
        Ok(Self::Steps(steps))
    }
}

/// One clause can have several operators: `u+r-x`.
fn steps_of(clause: &[u8], steps: &mut Vec<Step>) -> Option<()> {
    let is_operator = |b: &u8| matches!(b, b'+' | b'-' | b'=');
    let split = clause.iter().position(is_operator)?;
    let (who, mut rest) = clause.split_at(split);
    let mut mask = 0;
    for letter in who {
        mask |= match letter {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            b'a' => 0o7777,
            _ => return None,
        };
    }
    let who = (mask != 0).then_some(mask);
    while let [operator, after @ ..] = rest {
        let end = after.iter().position(is_operator).unwrap_or(after.len());
        let (bits, next) = after.split_at(end);
        if !bits.iter().all(|b| b"rwxXstugo".contains(b)) {
            return None;
        }
        steps.push(Step {
            who,
            operator: *operator,
            bits: bits.to_vec(),
        });
        rest = next;
    }
    Some(())
}

impl ModeChange {
    /// Returns the mode that `mode` becomes. Steps that say nothing of whose bits they change leave those of `umask`.
    pub(crate) fn apply(&self, mode: u32, is_dir: bool, umask: u32) -> u32 {
        match self {
            Self::To(bits) => *bits,
            Self::Steps(steps) => steps
                .iter()
                .fold(mode, |mode, step| step.apply(mode, is_dir, umask)),
        }
    }
}

impl Step {
    fn apply(&self, mode: u32, is_dir: bool, umask: u32) -> u32 {
        let mut bits = 0;
        for letter in &self.bits {
            bits |= match letter {
                b'r' => 0o444,
                b'w' => 0o222,
                b'x' => 0o111,
                b'X' if is_dir || mode & 0o111 != 0 => 0o111,
                b's' => 0o6000,
                b't' => 0o1000,
                b'u' => (mode >> 6 & 7) * 0o111,
                b'g' => (mode >> 3 & 7) * 0o111,
                b'o' => (mode & 7) * 0o111,
                _ => 0,
            };
        }
        let bits = bits & self.who.unwrap_or(!umask);
        match self.operator {
            b'+' => mode | bits,
            b'-' => mode & !bits,
            _ => mode & !self.who.unwrap_or(0o7777) | bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_as_chmod_reads_them() {
        for (text, from, to) in [
            ("755", 0o600, 0o755),
            ("4755", 0, 0o4755),
            ("u+x", 0o644, 0o744),
            ("+x", 0o644, 0o755),
            ("go-w,u=rwx", 0o666, 0o744),
            ("a=r", 0o777, 0o444),
            ("u+s", 0o755, 0o4755),
            ("+t", 0o755, 0o1755),
            ("g=u", 0o740, 0o770),
            ("a+X", 0o600, 0o600),
            ("a+X", 0o700, 0o711),
            ("u+r-x", 0o300, 0o600),
            ("o=", 0o777, 0o770),
        ] {
            let change: ModeChange = text.parse().unwrap();
            assert_eq!(change.apply(from, false, 0), to, "{text} on {from:o}");
        }
        let change: ModeChange = "a+X".parse().unwrap();
        assert_eq!(change.apply(0o600, true, 0), 0o711);
    }

    #[test]
    fn changes_of_nobody_s_bits_leave_those_of_the_umask() {
        for (text, from, to) in [
            ("+w", 0o444, 0o644),
            ("-w", 0o666, 0o466),
            ("=rwx", 0o070, 0o755),
            ("=", 0o4777, 0),
            ("+st", 0o755, 0o7755),
            ("a+w", 0o444, 0o666),
            ("a=rwx", 0o444, 0o777),
            ("ugo+w", 0o444, 0o666),
            ("777", 0, 0o777),
        ] {
            let change: ModeChange = text.parse().unwrap();
            assert_eq!(change.apply(from, false, 0o022), to, "{text} on {from:o}");
        }
    }

    #[test]
    fn what_is_no_mode_is_refused() {
        for text in ["", "8", "77777", "u", "u+q", "z+x", "rwx", "u+x,"] {
            assert!(text.parse::<ModeChange>().is_err(), "{text}");
        }
    }
}

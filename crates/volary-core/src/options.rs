//! Options of a mount or of mkfs: `-o key=value,flag`.

use crate::{Error, Kind, Result};
use std::time::Duration;

/// An option, or a topic of a dump, and its help.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// `iosize`
    pub name: &'static str,
    /// What a value looks like, or "" for a flag: `SIZE`.
    pub value: &'static str,
    /// One sentence, with the default.
    pub help: &'static str,
}

/// Options as the user gave them, in order; the last of a name counts.
///
/// The second field names options that another component takes: see
/// [`also_known`](Self::also_known).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(String, Option<String>)>, Vec<&'static str>);

impl Options {
    /// Returns no options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses `key=value,flag`. Skips empty parts.
    pub fn parse(text: &str) -> Self {
        let mut all = Self::default();
        all.add(text);
        all
    }

    /// Parses `text` and adds its options.
    pub fn add(&mut self, text: &str) {
        for part in text.split(',').filter(|p| !p.is_empty()) {
            match part.split_once('=') {
                Some((k, v)) => self.0.push((k.into(), Some(v.into()))),
                None => self.0.push((part.into(), None)),
            }
        }
    }

    /// Sets an option.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.into(), Some(value.into())));
    }

    /// Removes `key` and returns its value: `None` if it was not given, `Some("")` for a flag
    /// without a value.
    pub fn take(&mut self, key: &str) -> Option<String> {
        let found = self
            .0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.clone());
        self.0.retain(|(k, _)| k != key);
        found.map(Option::unwrap_or_default)
    }

    /// Removes all options for whose name `which` returns true, whatever their values.
    pub fn pass_over(&mut self, which: impl Fn(&str) -> bool) {
        self.0.retain(|(key, _)| !which(key));
    }

    /// Returns the one of these names that was given last.
    pub fn last_of<'a>(&self, keys: &[&'a str]) -> Option<&'a str> {
        let mut given = self.0.iter().rev().map(|(key, _)| key);
        given.find_map(|key| keys.iter().find(|known| *known == key).copied())
    }

    /// Adds options that the error of [`check_known`](Self::check_known) lists too. A caller takes
    /// these out before the options are checked.
    pub fn also_known(&mut self, specs: &[OptionSpec]) {
        self.1.extend(specs.iter().map(|spec| spec.name));
    }

    /// Refuses options that `known` does not list.
    ///
    /// # Errors
    /// `Invalid`, naming the option and the known ones, with those of
    /// [`also_known`](Self::also_known).
    pub fn check_known(&self, known: &[OptionSpec]) -> Result<()> {
        for (key, _) in &self.0 {
            if !known.iter().any(|spec| spec.name == key) {
                let mut names: Vec<&str> = Vec::new();
                for name in known
                    .iter()
                    .map(|spec| spec.name)
                    .chain(self.1.iter().copied())
                {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                return Err(Error::note(
                    Kind::Invalid,
                    format!("unknown option '{key}'; known are: {}", names.join(", ")),
                ));
            }
        }
        Ok(())
    }

    /// Returns the value of a flag: `default` if absent, true if bare. A value must be one of
    /// `yes no true false on off 1 0`.
    ///
    /// # Errors
    /// `Invalid` for any other value.
    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        match self.get(key) {
            None => Ok(default),
            Some("" | "yes" | "true" | "on" | "1") => Ok(true),
            Some("no" | "false" | "off" | "0") => Ok(false),
            Some(v) => Err(bad(key, v, "yes or no")),
        }
    }

    /// Returns a number: decimal, `0x` hexadecimal, `0o` octal, with `k`, `M`, `G`, `T`
    /// for powers of 1024.
    ///
    /// # Errors
    /// `Invalid` if it is not one.
    pub fn number(&self, key: &str) -> Result<Option<u64>> {
        self.get(key)
            .map(|v| parse_size(v).ok_or_else(|| bad(key, v, "a number such as 16k or 0x1000")))
            .transpose()
    }

    /// Returns a duration in seconds, with or without a fraction: `5`, `0.5`. A day is the most.
    ///
    /// # Errors
    /// `Invalid` if it is not one.
    pub fn seconds(&self, key: &str) -> Result<Option<Duration>> {
        self.get(key)
            .map(|v| parse_seconds(v).ok_or_else(|| bad(key, v, "seconds such as 5 or 0.5")))
            .transpose()
    }

    /// Returns an octal number, as modes and masks are written.
    ///
    /// # Errors
    /// `Invalid` if it is not one.
    pub fn octal(&self, key: &str) -> Result<Option<u32>> {
        self.get(key)
            .map(|v| {
                u32::from_str_radix(v.trim_start_matches("0o"), 8)
                    .map_err(|_| bad(key, v, "an octal number such as 022"))
            })
            .transpose()
    }

    /// Returns the value of `key`; "" for a flag without one.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_deref().unwrap_or(""))
    }

    /// Returns the one of `choices` that the option names.
    ///
    /// # Errors
    /// `Invalid`, naming the choices.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(v) = self.get(key) else {
            return Ok(None);
        };
        let names = || choices.iter().map(|c| c.0).collect::<Vec<_>>().join(" or ");
        match choices.iter().find(|c| c.0 == v) {
            Some(c) => Ok(Some(c.1)),
            None => Err(bad(key, v, &names())),
        }
    }

    /// Returns whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Parses a size in bytes as people write it: `512`, `0x1000`; `64k`, `64M`, `64MiB`, `1.5G` in
    /// powers of 1024; `64kB`, `64MB` in powers of 1000. `None` if `text` is no size, not a whole
    /// number of bytes, or too large.
    pub fn parse_size(text: &str) -> Option<u64> {
        parse_size(text)
    }
}

fn bad(key: &str, value: &str, expected: &str) -> Error {
    Error::note(
        Kind::Invalid,
        format!("option '{key}' is '{value}', expected {expected}"),
    )
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !(is_digits(whole) && is_digits(part)) || part.len() > 9 {
        return None;
    }
    let nanos: u32 = format!("{part:0<9}").parse().ok()?;
    let all = Duration::new(whole.parse().ok()?, nanos);
    (all <= Duration::from_secs(86_400)).then_some(all)
}

fn parse_size(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(oct) = text.strip_prefix("0o") {
        return u64::from_str_radix(oct, 8).ok();
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (unit, base): (&str, u64) = match &text[digits.len()..] {
        "" | "B" => ("", 1),
        unit => match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
            (Some(""), _) => return None,
            (Some(unit), _) => (unit, 1024),
            (None, Some(unit)) => (unit, 1000),
            (None, None) => (unit, 1024),
        },
    };
    let power = match unit {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    scaled(digits, base.pow(power))
}

/// Parses a decimal number, with or without a fraction, and multiplies it by `unit`.
fn scaled(digits: &str, unit: u64) -> Option<u64> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 18 {
        return None;
    }
    let parts = u128::from(part.parse::<u64>().ok()?) * u128::from(unit);
    let tens = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let bytes = u128::from(whole.parse::<u64>().ok()?).checked_mul(unit.into())?;
    let is_whole = unit > 1 || parts == 0;
    let all = bytes.checked_add(parts / tens).filter(|_| is_whole)?;
    u64::try_from(all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, n) in [
            ("512", 512),
            ("64M", 64 << 20),
            ("0x1000", 4096),
            ("16k", 16 << 10),
            ("2TiB", 2 << 40),
            ("64m", 64 << 20),
            ("64MB", 64_000_000),
            ("1.44MB", 1_440_000),
            ("1.5G", 3 << 29),
            ("0.5k", 512),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Some(n), "{text}");
        }
        for text in [
            "",
            "M",
            "1.5",
            "1.",
            ".5G",
            "12Q",
            "12iB",
            "99999999999T",
            "-1",
            "1e3",
            "64MM",
            "٣",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_have_parts() {
        for (text, millis) in [("0", 0), ("5", 5000), ("0.5", 500), ("1.025", 1025)] {
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(parse_seconds(text), expected, "{text}");
        }
        for text in [
            "",
            ".",
            "-1",
            "+1",
            ".5",
            "1.",
            "5s",
            "1e3",
            "86400.1",
            "0.1234567890",
        ] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_of_a_name_counts_and_unknown_ones_are_named() {
        let o = Options::parse("ro,uid=5,uid=7");
        assert_eq!(o.number("uid"), Ok(Some(7)));
        assert_eq!(o.flag("ro", false), Ok(true));
        let known = [OptionSpec {
            name: "uid",
            value: "ID",
            help: "",
        }];
        let e = o.check_known(&known).unwrap_err();
        assert_eq!(e.to_string(), "unknown option 'ro'; known are: uid");
        let (mut o, mut memory) = (o, known);
        memory[0].name = "memory";
        o.also_known(&[known, memory, memory].concat());
        let e = o.check_known(&known).unwrap_err();
        assert_eq!(e.to_string(), "unknown option 'ro'; known are: uid, memory");
    }
}

//! What a format does beside attaching volumes, and how it refuses the rest.

use crate::{Error, Format, Kind};

/// What a [`Format`] does beside recognising and attaching its volumes, as bits. Who uses it asks here, and
/// need not try. [`Format::info`] works for every format; [`Format::dump`] for those that list topics.
///
/// A bit and the method that it stands for go together: the method's default body refuses, so a bit alone
/// promises nothing, and without the bit nobody calls the method. [`unkept`] finds either mistake in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities(u32);

impl Abilities {
    /// Nothing: its volumes are read, or written, and that is all.
    pub const NONE: Self = Self(0);
    /// Makes volumes: [`Format::make`].
    pub const MAKE: Self = Self(1 << 0);
    /// Checks them: [`Format::check`].
    pub const CHECK: Self = Self(1 << 1);
    /// Mends what a check finds; means nothing without [`CHECK`](Self::CHECK).
    pub const MEND: Self = Self(1 << 2);
    /// Shows what lies where: [`Format::map`].
    pub const MAP: Self = Self(1 << 3);
    /// Changes them in place: [`Format::tune`].
    pub const TUNE: Self = Self(1 << 4);
    /// Keeps sectors out of use: [`Format::mark_bad`].
    pub const MARK_BAD: Self = Self(1 << 5);
    /// All of these.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Each with its word, in the order in which people meet them.
    pub const WORDS: [(Self, &'static str); 6] = [
        (Self::MAKE, "make"),
        (Self::CHECK, "check"),
        (Self::MEND, "mend"),
        (Self::MAP, "map"),
        (Self::TUNE, "tune"),
        (Self::MARK_BAD, "mark bad sectors"),
    ];

    /// Adds `more`.
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// Returns whether all of `these` are in it.
    pub const fn has(self, these: Self) -> bool {
        self.0 & these.0 == these.0
    }
}

/// Programs of others that do what a format does not: for the line in which it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// They make volumes: `xorriso or genisoimage`.
    pub make: Option<&'static str>,
    /// They change, check and mend them: `tune2fs and e2fsck`.
    pub change: Option<&'static str>,
}

/// Returns the refusal of an operation that a format has not: what the default bodies of [`Format`] answer.
pub(crate) fn refusal<F: Format + ?Sized>(format: &F, what: Abilities) -> Error {
    let (name, others) = (format.name(), format.others());
    let by = |who: Option<&str>, does: &str| match who {
        Some(who) => format!("; {who} {does}"),
        None => String::new(),
    };
    let words = match what {
        Abilities::MAKE => {
            let makers = others.make.map(|who| format!("; make one with {who}"));
            format!(
                "{name} volumes are not made here{}",
                makers.unwrap_or_default()
            )
        }
        Abilities::CHECK => {
            format!(
                "{name} volumes are not checked here{}",
                by(others.change, "do it")
            )
        }
        Abilities::MAP => {
            format!("{name} volumes are not mapped here: this format does not tell what lies where")
        }
        Abilities::TUNE => {
            format!(
                "{name} volumes are not changed in place here{}",
                by(others.change, "do it")
            )
        }
        _ => format!(
            "sectors of {name} volumes are not marked bad here{}",
            by(others.change, "do it")
        ),
    };
    Error::note(Kind::Unsupported, words)
}

/// Returns where a format does not keep what its [`Format::abilities`] say, a line each: for its tests. Tries each
/// operation on `nothing`, a device of 0 bytes, which no operation takes for a volume: what answers `Unsupported` is refused.
pub fn unkept(
    format: &dyn Format,
    nothing: &std::sync::Arc<dyn crate::BlockDevice>,
) -> Vec<String> {
    use crate::{Answer, Check, CheckMode, Make, Options, Quiet, Time, Tune};
    let kind = format.kinds().first().copied().unwrap_or_default();
    let check = Check {
        mode: CheckMode::Look,
        now: Time::EPOCH,
        options: Options::new(),
    };
    let dev = || nothing.clone();
    let refused = |failure: Option<Error>| failure.is_some_and(|e| e == Kind::Unsupported);
    let make = format.make(dev(), kind, &Make::default()).err();
    let checked = format
        .check(dev(), &check, &mut |_| Answer::No, &Quiet)
        .err();
    let map = format.map(dev(), 1).err();
    let tune = format.tune(dev(), &Tune::default(), &Quiet).err();
    let mark = format.mark_bad(dev(), &[]).err();
    let (name, has) = (format.name(), |what| format.abilities().has(what));
    let mut lines = Vec::new();
    for (what, failure) in [
        (Abilities::MAKE, make),
        (Abilities::CHECK, checked),
        (Abilities::MAP, map),
        (Abilities::TUNE, tune),
        (Abilities::MARK_BAD, mark),
    ] {
        let word = Abilities::WORDS.iter().find(|(of, _)| *of == what);
        let word = word.map_or("", |(_, word)| word);
        match (has(what), refused(failure)) {
            (true, true) => lines.push(format!("{name}: '{word}' is an ability, and is refused")),
            (false, false) => lines.push(format!("{name}: '{word}' is done, and is no ability")),
            _ => {}
        }
    }
    if has(Abilities::MEND) && !has(Abilities::CHECK) {
        lines.push(format!("{name}: mends, and does not check"));
    }
    for (what, options) in [
        (Abilities::MAKE, format.make_options()),
        (Abilities::CHECK, format.check_options()),
        (Abilities::TUNE, format.tune_options()),
    ] {
        if !options.is_empty() && !has(what) {
            lines.push(format!("{name}: has options of what it does not do"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attach, BlockDevice, Fs, Geometry, Make, Probe, Result};
    use std::sync::Arc;

    struct Nothing;

    impl BlockDevice for Nothing {
        fn geometry(&self) -> Geometry {
            Geometry {
                size: 0,
                sector: 512,
                read_only: true,
            }
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
            Err(Kind::Invalid.into())
        }
        fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
            Err(Kind::ReadOnly.into())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    /// Recognises everything and does nothing else.
    struct Bare;

    impl Format for Bare {
        fn name(&self) -> &'static str {
            "bare"
        }
        fn kinds(&self) -> &'static [&'static str] {
            &["bare"]
        }
        fn others(&self) -> Others {
            Others {
                make: Some("mkbare"),
                change: None,
            }
        }
        fn probe(&self, _: &dyn BlockDevice) -> Result<Option<Probe>> {
            Ok(Some(Probe {
                kind: "bare",
                label: Some("a\n".into()),
            }))
        }
        fn attach(&self, _: Arc<dyn BlockDevice>, _: &Attach) -> Result<Fs> {
            Err(Kind::Io.into())
        }
    }

    /// Says that it makes volumes and does not; does not say that it tunes them, and does.
    struct Liar;

    impl Format for Liar {
        fn name(&self) -> &'static str {
            "liar"
        }
        fn kinds(&self) -> &'static [&'static str] {
            Bare.kinds()
        }
        fn abilities(&self) -> Abilities {
            Abilities::MAKE.and(Abilities::MEND)
        }
        fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
            Bare.probe(dev)
        }
        fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs> {
            Bare.attach(dev, how)
        }
        fn tune(
            &self,
            _: Arc<dyn BlockDevice>,
            _: &crate::Tune,
            _: &dyn crate::Progress,
        ) -> Result<Vec<crate::Fact>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_format_of_four_methods_refuses_the_rest_by_name() {
        let nothing: Arc<dyn BlockDevice> = Arc::new(Nothing);
        assert_eq!(unkept(&Bare, &nothing), [""; 0]);
        let made = Bare.make(nothing.clone(), "bare", &Make::default());
        let told = made.unwrap_err().to_string();
        assert_eq!(told, "bare volumes are not made here; make one with mkbare");
        let dumped = Bare.dump(nothing.clone(), &[], &mut String::new());
        assert_eq!(dumped.unwrap_err(), Kind::Unsupported);
        let facts = Bare.info(nothing).unwrap();
        let facts: Vec<_> = facts.iter().map(|f| (f.key, f.value.as_str())).collect();
        let expected = [("format", "bare"), ("label", r"a\n"), ("size", "0 bytes")];
        assert_eq!(facts, expected);
    }

    #[test]
    fn an_ability_that_is_forgotten_or_made_up_is_found() {
        let nothing: Arc<dyn BlockDevice> = Arc::new(Nothing);
        let found = unkept(&Liar, &nothing);
        let expected = [
            "liar: 'make' is an ability, and is refused",
            "liar: 'tune' is done, and is no ability",
            "liar: mends, and does not check",
        ];
        assert_eq!(found, expected);
    }
}

//! Tests that a format's abilities match its methods.

use crate::{
    Abilities, Answer, BlockDevice, Check, CheckMode, Error, Format, Kind, Make, Options, Quiet,
    Time, Tune,
};
use std::sync::Arc;

/// Returns a line for each mismatch between [`Format::abilities`] and the format's methods, for its
/// tests. Tries each operation on `nothing`, a device of 0 bytes, which holds no volume. An
/// operation that answers `Unsupported` counts as refused.
pub fn unkept(format: &dyn Format, nothing: &Arc<dyn BlockDevice>) -> Vec<String> {
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
    use crate::{Attach, Fs, Geometry, Others, Probe, Result};

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

    /// Claims to make volumes but does not; tunes them but does not claim to.
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
            _: &Tune,
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

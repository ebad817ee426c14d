//! Drivers that are loaded at run time: `volary_plugin`, and the scheme that opens their volumes.
//!
//! No registry has the scheme by default, as it lets whoever names a volume run code.
//!
//! ```
//! let registry = volary::Registry::default().with(volary::plugin::scheme());
//! let source = registry.source(b"plugin:sqlite?notes.db")?;
//! assert_eq!(source.to_string(), "plugin:sqlite?notes.db");
//! # Ok::<(), volary::Error>(())
//! ```

use crate::Scheme;
pub use volary_plugin::*;

/// Returns the scheme `plugin:NAME?CONFIG`, `plugin:/path/libNAME.so?name=NAME&CONFIG`. It opens a
/// volume of a plug-in, which [`installed`] finds and runs.
pub fn scheme() -> Scheme {
    Scheme::new("plugin", open)
        .help("NAME?CONFIG", "a driver that is loaded at run time")
        .options(OPTIONS)
        .label(|words| Words::parse(words).ok().map(|words| words.label()))
        .before(|words, options| installed().prepare(words, options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, Registry, Source};
    use volary_core::{Attach, Kind, Options, Time};

    fn registry() -> Registry {
        Registry::default().with(scheme())
    }

    #[test]
    fn what_stands_behind_the_colon_is_a_volume_and_a_place_in_it() {
        for (text, words, inner) in [
            ("plugin:foo", "foo", "/"),
            ("plugin:foo?x=/y:/a", "foo?x=/y", "/a"),
            ("plugin:/d/libfoo.so:", "/d/libfoo.so", "/"),
            (r"plugin:foo?u=a\:/b", "foo?u=a:/b", "/"),
        ] {
            let (name, rest) = ("plugin", words.into());
            let expected = Place::Volume {
                source: Source::Scheme { name, rest },
                path: inner.into(),
            };
            assert_eq!(
                registry().place(text.as_bytes()).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn no_name_of_a_plug_in_is_refused_before_anything_is_started() {
        for words in ["", "?x"] {
            let rest = words.as_bytes();
            assert_eq!(
                scheme().prepare(rest, &Options::new()).unwrap_err(),
                Kind::Invalid
            );
            let source = registry()
                .source(format!("plugin:{words}").as_bytes())
                .unwrap();
            let opened = registry().open_volume(&source, &Attach::default(), Time::EPOCH);
            assert_eq!(opened.err().map(|e| e.kind()), Some(Kind::Invalid));
        }
    }

    #[test]
    fn a_program_that_names_no_helper_runs_no_plug_in_unasked() {
        let source = registry().source(b"plugin:/d/libfoo.so").unwrap();
        let opened = registry().open_volume(&source, &Attach::default(), Time::EPOCH);
        assert_eq!(opened.err().map(|e| e.kind()), Some(Kind::Unsupported));
        // Without the scheme in its registry, a program does not know the source at all.
        assert!(!matches!(
            Source::parse(b"plugin:foo"),
            Ok(Source::Scheme { .. })
        ));
    }

    #[test]
    fn a_volume_is_called_as_its_library() {
        assert_eq!(scheme().label_of(b"/d/libfoo.so?name=bar"), "foo");
        assert_eq!(scheme().label_of(b"sqlite?v.db"), "sqlite");
        assert_eq!(scheme().label_of(b""), "plugin");
    }
}

//! What a format can do besides attaching volumes, and how it refuses the rest.

use crate::{Error, Kind};

/// What a [`Format`](crate::Format) can do besides recognising and attaching its volumes, as bits.
/// Callers ask here instead of trying. [`Format::info`](crate::Format::info) works for every
/// format, and [`Format::dump`](crate::Format::dump) for those that list topics.
///
/// A bit and its method belong together. A bit without a method promises nothing, as the method's
/// default body refuses; a method without its bit is never called. [`unkept`](crate::unkept) finds
/// either mistake in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities(u32);

impl Abilities {
    /// No ability: its volumes can be read, and perhaps written, and nothing else.
    pub const NONE: Self = Self(0);
    /// Makes volumes: [`Format::make`](crate::Format::make).
    pub const MAKE: Self = Self(1 << 0);
    /// Checks volumes: [`Format::check`](crate::Format::check).
    pub const CHECK: Self = Self(1 << 1);
    /// Mends what a check finds; means nothing without [`CHECK`](Self::CHECK).
    pub const MEND: Self = Self(1 << 2);
    /// Shows what lies where: [`Format::map`](crate::Format::map).
    pub const MAP: Self = Self(1 << 3);
    /// Changes volumes in place: [`Format::tune`](crate::Format::tune).
    pub const TUNE: Self = Self(1 << 4);
    /// Keeps sectors out of use: [`Format::mark_bad`](crate::Format::mark_bad).
    pub const MARK_BAD: Self = Self(1 << 5);
    /// All of the abilities.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Each ability with its word, in the order in which people meet them.
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

    /// Returns whether the set contains all of `these`.
    pub const fn has(self, these: Self) -> bool {
        self.0 & these.0 == these.0
    }
}

/// Other projects' programs that do what a format does not. Its refusals name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Programs that make volumes: `xorriso or genisoimage`.
    pub make: Option<&'static str>,
    /// Programs that change, check and mend volumes: `tune2fs and e2fsck`.
    pub change: Option<&'static str>,
}

/// Returns the error with which the default bodies of [`Format`](crate::Format) refuse an
/// operation.
pub(crate) fn refusal(name: &str, others: Others, what: Abilities) -> Error {
    let by_others = match others.change {
        Some(who) => format!("; use {who}"),
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
            format!("{name} volumes are not checked here{by_others}")
        }
        Abilities::MAP => {
            format!("{name} volumes are not mapped here: this format does not tell what lies where")
        }
        Abilities::TUNE => {
            format!("{name} volumes are not changed in place here{by_others}")
        }
        _ => format!("sectors of {name} volumes are not marked bad here{by_others}"),
    };
    Error::note(Kind::Unsupported, words)
}

//! The specification of a case: its name, and the volumes that it is for.

use super::case::Case;
use volary_core::{Call, Caps};

/// A named case and when it applies.
#[derive(Clone, Copy)]
pub(crate) struct CaseSpec {
    pub(crate) name: &'static str,
    pub(crate) with: u32,
    pub(crate) without: u32,
    /// The operations whose contract the case tests.
    pub(crate) about: &'static [Call],
    pub(crate) run: fn(&Case),
}

impl CaseSpec {
    /// Returns why the case does not fit a volume with these caps, or `None` if it does.
    pub(super) fn unfit(&self, caps: &Caps) -> Option<String> {
        let lacking = self.with & !caps.bits;
        if lacking != 0 {
            return Some(format!("the volume does not claim {}", words(lacking)));
        }
        let claimed = self.without & caps.bits;
        (claimed != 0).then(|| format!("the volume claims {}", words(claimed)))
    }
}

/// Returns the names of capability bits.
fn words(bits: u32) -> String {
    let named = NAMES.iter().filter(|(bit, _)| bits & bit != 0);
    named.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
}

/// Pairs each capability bit with its name.
macro_rules! names {
    ($($name:ident)*) => { &[$((Caps::$name, stringify!($name))),*] };
}

const NAMES: &[(u32, &str)] = names! {
    WRITE MODES SYMLINKS HARD_LINKS DEVICES XATTRS HOLES CASE_SENSITIVE CASE_KEEPING STABLE_IDS
    STABLE_COOKIES CRASH_SAFE EXTENTS CHECKS_ACCESS SHARED_LOCKS WATCH PREALLOCATE SWAP ANY_NAME
    SHARED
};

/// Defines `CASES`, a list of [`CaseSpec`]s about some operations. Its lines are `name with A | B
/// without C;`, where A, B and C are constants of [`Caps`].
macro_rules! case_list {
    (about $($call:ident)|+ ;
        $( $name:ident $(with $($with:ident)|+)? $(without $($without:ident)|+)? ; )*) => {
        pub(crate) const CASES: &[$crate::suite::CaseSpec] = &[$(
            $crate::suite::CaseSpec {
                name: stringify!($name),
                with: 0 $($(| volary_core::Caps::$with)+)?,
                without: 0 $($(| volary_core::Caps::$without)+)?,
                about: ABOUT,
                run: $name,
            }
        ),*];

        const ABOUT: &[volary_core::Call] = &[$(volary_core::Call::$call),+];
    };
}
pub(crate) use case_list;

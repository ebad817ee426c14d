//! Cases by name, and which volumes each is for.

use super::case::Case;

/// A named case and when it applies.
#[derive(Clone, Copy)]
pub(crate) struct CaseSpec {
    pub(crate) name: &'static str,
    pub(crate) with: u32,
    pub(crate) without: u32,
    pub(crate) run: fn(&Case),
}

/// A list of [`CaseSpec`]s: `name with A | B without C;`, where the words are
/// constants of [`Caps`].
macro_rules! case_list {
    ($( $name:ident $(with $($with:ident)|+)? $(without $($without:ident)|+)? ; )*) => {
        pub(crate) const CASES: &[$crate::suite::CaseSpec] = &[$(
            $crate::suite::CaseSpec {
                name: stringify!($name),
                with: 0 $($(| volary_core::Caps::$with)+)?,
                without: 0 $($(| volary_core::Caps::$without)+)?,
                run: $name,
            }
        ),*];
    };
}
pub(crate) use case_list;

//! Mount points: their checks, mounting and unmounting, by this process or by a helper. Uses the
//! rooms above.

pub(crate) mod attend;
pub(crate) mod held;
pub(crate) mod mounted;
pub(crate) mod mountinfo;
pub(crate) mod mounting;
pub(crate) mod passing;
pub(crate) mod point;

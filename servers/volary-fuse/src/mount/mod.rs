//! Mount points: what can be wrong with one, how it is mounted and left, by this process or by one beside.
//! Uses the rooms above.

pub(crate) mod attend;
pub(crate) mod held;
pub(crate) mod mounted;
pub(crate) mod mountinfo;
pub(crate) mod mounting;
pub(crate) mod passing;
pub(crate) mod point;

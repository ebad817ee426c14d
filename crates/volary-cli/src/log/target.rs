//! Whose an event is.

/// The target of this command's own events; servers' events have their names.
pub(super) const OURS: &str = "volary";
/// Reports that are printed as they are.
pub(super) const REPORT: &str = "report";

//! Which tests may fail beside others and pass alone, and why.

/// Parts of the names of tests that are never excused: of coherence, crashes, conformance and security.
const NEVER: &[&str] = &[
    "agree",
    "caught",
    "claims",
    "coheren",
    "conform",
    "crash",
    "cuts",
    "escape",
    "faults",
    "forgery",
    "fsx",
    "handles",
    "hostile",
    "kills",
    "pjdfstest",
    "planted",
    "protect",
    "sandbox",
    "torture",
];

/// A package whose other tests may, and the reason. To become empty.
const EXCUSED: &[(&str, &str)] = &[
    (
        "volary-cli",
        "waits for real servers and clients, with limits of time not yet looked through",
    ),
    (
        "volary-fuse",
        "waits for the kernel's news, with limits of time not yet looked through",
    ),
    (
        "volary-nfs",
        "waits for clients, with limits of time not yet looked through",
    ),
    (
        "volary-nfs-client",
        "waits for servers that go and come back, with limits of time not yet looked through",
    ),
    (
        "volary-smb",
        "waits for clients, with limits of time not yet looked through",
    ),
];

/// Why this test may fail beside others, if it may. `name` is its package's, a space, its own.
pub(super) fn reason(name: &str) -> Option<&'static str> {
    let (package, test) = name.split_once(' ')?;
    if NEVER.iter().any(|word| test.contains(word)) {
        return None;
    }
    let excused = EXCUSED.iter().find(|(known, _)| package == *known);
    excused.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_lose_data_or_let_somebody_in_is_not_excused() {
        assert!(reason("volary-cli serving::ends").is_some());
        assert!(reason("volary-cli kills::nothing_is_lost").is_none());
        assert!(reason("volary-fuse conformance::fat12").is_none());
        assert!(reason("volary-fat differential").is_none());
    }
}

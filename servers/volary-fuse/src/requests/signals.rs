//! Checks whether a thread of another process has a pending signal.
//!
//! The kernel tells a FUSE server of an interrupted request by a message that the FUSE library does
//! not pass on. Without an answer to it, the caller of a blocking lock could not even be killed. So
//! a waiting request checks this regularly.

use std::fs;

/// Returns whether the thread with this id is gone, or has a pending signal that it neither blocks
/// nor ignores.
pub(crate) fn is_interrupted(thread: u32) -> bool {
    match fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => has_signal(&status),
        Err(_) => true,
    }
}

fn has_signal(status: &str) -> bool {
    let mask = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
            .unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !(mask("SigBlk:") | mask("SigIgn:")) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_unless_it_is_blocked_or_ignored() {
        let status = |pending: &str, shared: &str, blocked: &str, ignored: &str| {
            format!(
                "Name:\tx\nSigPnd:\t{pending}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n"
            )
        };
        assert!(!has_signal(&status("0", "0", "0", "0")));
        assert!(has_signal(&status("0000000000000100", "0", "0", "0")));
        assert!(has_signal(&status("0", "4002", "4000", "0")));
        assert!(!has_signal(&status("0", "4002", "4000", "2")));
    }

    #[test]
    fn this_thread_is_not_interrupted_and_none_is() {
        assert!(!is_interrupted(std::process::id()));
        assert!(is_interrupted(u32::MAX));
    }
}

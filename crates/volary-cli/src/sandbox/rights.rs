//! Root's rights: those that a server uses, of the forty that there are.

use super::needs::Needs;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// To open what belongs to others, and write it to the last block; to use ports that are root's; to
/// become another.
const ALWAYS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);
/// To act for clients in a directory of the host.
const IN_TREES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::MKNOD);

/// Gives up the others, on this thread and those that it starts.
///
/// # Errors
/// The host's, for the user.
pub(super) fn give_up(needs: &Needs) -> Result<(), String> {
    let mut kept = ALWAYS;
    if needs.has_tree() {
        kept |= IN_TREES;
    }
    let fail = |e: rustix::io::Errno| format!("capabilities: {e}");
    let held = capabilities(None).map_err(fail)?;
    let less = CapabilitySets {
        effective: held.effective & kept,
        permitted: held.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, less).map_err(fail)
}

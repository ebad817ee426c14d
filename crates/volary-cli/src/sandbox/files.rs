//! Landlock: files of the host and ports, by what [`Needs`] lists.

use super::needs::{May, Needs};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// Linux 6.12: files, TCP ports, devices' controls, abstract sockets and signals.
const WANTED: ABI = ABI::V6;

/// Refuses this thread, and those that it starts, all but what is needed.
///
/// # Errors
/// What is not to be had of it, for the user. What is to be had then holds.
pub(super) fn restrict(needs: &Needs) -> Result<(), String> {
    if needs.has_tree() && !can_rename() {
        // The first version refuses every rename to another directory.
        return Err("Landlock of Linux 5.19".into());
    }
    let status = enforce(needs).map_err(|e| format!("Landlock: {e}"))?;
    match status {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced => Err("parts of Landlock (Linux 6.12)".into()),
        RulesetStatus::NotEnforced => Err("Landlock".into()),
    }
}

/// Returns whether this kernel refuses files, and ports of TCP. What is newer has no part in the tests.
#[cfg(test)]
pub(super) fn is_there() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V3)).is_ok()
}

fn can_rename() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::Refer).is_ok()
}

fn enforce(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?;
    // Clients of NFS are called back on ports of their choice, and servers bind ports of root's.
    let binds = !needs.calls_out;
    let connects = needs.calls_out || needs.calls_back;
    if binds {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    if !connects {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut ruleset = ruleset.create()?;
    for (path, may) in &needs.paths {
        // What is not there now is refused later; whoever opens it says so.
        ruleset = ruleset.add_rules(path_beneath_rules([path], rights(*may)))?;
    }
    if binds {
        // Port 0 is any that is free.
        for port in needs.ports.iter().chain(&[0]) {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

fn rights(may: May) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    match may {
        May::Read => read,
        May::Look => read | AccessFs::IoctlDev,
        May::Change => read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
        May::Keep => {
            AccessFs::ReadDir
                | AccessFs::MakeReg
                | AccessFs::RemoveFile
                | AccessFs::WriteFile
                | AccessFs::Truncate
        }
        May::All => AccessFs::from_all(WANTED) & !(AccessFs::Execute | AccessFs::IoctlDev),
    }
}

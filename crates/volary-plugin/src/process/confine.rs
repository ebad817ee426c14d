//! The rights that a worker gives up before it loads the library: access to other processes,
//! programs and the kernel.
//!
//! It keeps its user's access to files, as only the plug-in knows which files it needs.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// The most descriptors of a worker.
const FILES_MAX: u64 = 1024;
/// The most memory of a worker, in bytes, besides the bound for caches.
const MEMORY_MORE: u64 = 1 << 30;
/// The bit of system calls of the x32 ABI, for kernels that have it.
const X32: i64 = 0x4000_0000;

/// Refused system calls: those that reach other processes, programs and the kernel.
const REFUSED: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_syslog,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// Gives up these rights, as far as this kernel supports it. Lower limits that exist already stay.
pub(super) fn confine(memory: u64) {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let _ = rustix::thread::set_no_new_privs(true);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    bound(Resource::Core, 0);
    bound(Resource::Nofile, FILES_MAX);
    bound(Resource::Data, memory.saturating_add(MEMORY_MORE));
    // Without seccomp, only the limits hold.
    let _ = restrict();
}

fn bound(what: Resource, most: u64) {
    let less = |limit: Option<u64>| Some(limit.map_or(most, |now| now.min(most)));
    let now = rustix::process::getrlimit(what);
    let limit = Rlimit {
        current: less(now.current),
        maximum: less(now.maximum),
    };
    let _ = setrlimit(what, limit);
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn restrict() -> Result<(), seccompiler::Error> {
    let mut rules = Rules::new();
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        for number in numbers(*call) {
            rules.insert(number, Vec::new());
        }
    }
    // New threads are allowed, new processes are not.
    let flag = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let process = condition(0, SeccompCmpOp::MaskedEq(flag), 0)?;
    add(&mut rules, libc::SYS_clone, &[process])?;
    // A process aborts by a signal to itself.
    let another = condition(0, SeccompCmpOp::Ne, std::process::id().into())?;
    add(&mut rules, libc::SYS_tgkill, &[another])?;
    // It sets limits of its own.
    let another = condition(0, SeccompCmpOp::Ne, 0)?;
    add(&mut rules, libc::SYS_prlimit64, &[another])?;
    apply_filter(&program(rules, libc::EPERM)?)?;
    // A filter cannot see the flags of `clone3`. After ENOSYS the C library calls `clone`.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    apply_filter(&program(clone3, libc::ENOSYS)?)
}

fn numbers(call: i64) -> impl Iterator<Item = i64> {
    let x32 = cfg!(target_arch = "x86_64").then_some(call | X32);
    std::iter::once(call).chain(x32)
}

fn condition(
    argument: u8,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    condition.map_err(Into::into)
}

fn add(rules: &mut Rules, call: i64, all: &[SeccompCondition]) -> Result<(), seccompiler::Error> {
    for number in numbers(call) {
        rules.insert(number, vec![SeccompRule::new(all.to_vec())?]);
    }
    Ok(())
}

fn program(rules: Rules, error: i32) -> Result<BpfProgram, seccompiler::Error> {
    let refused = SeccompAction::Errno(error.cast_unsigned());
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?;
    Ok(filter.try_into()?)
}

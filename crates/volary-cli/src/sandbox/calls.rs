//! seccomp: system calls that no server makes once it has started.
//!
//! A list of what is refused, with `EPERM`, rather than of what is allowed: the C library, the
//! standard library and six crates below choose system calls, and change their choice with a kernel
//! or a version; what they then miss would be a server that fails in the field. What is listed is
//! what a process uses to get hold of others, of programs, of the kernel or of the network.

use super::needs::Needs;
use libc::{AF_INET, AF_INET6, AF_NETLINK, CLONE_THREAD, ENOSYS, EPERM, SOCK_STREAM};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// `NETLINK_SOCK_DIAG` (linux/netlink.h): whose a socket is.
const SOCK_DIAG: u64 = 4;
/// Types of sockets that are not streams, as far as Linux has them (`enum sock_type`).
const NO_STREAMS: [u64; 7] = [0, 2, 3, 4, 5, 6, 10];
/// The part of a type that is no flag (`SOCK_TYPE_MASK`).
const TYPE_MASK: u64 = 0xF;
/// `TIOCSTI` and `TIOCLINUX` (asm-generic/ioctls.h): what types at a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541C];
/// Numbers of the x32 ABI, on kernels that have it.
const X32: i64 = 0x4000_0000;

/// From the start on.
const NEVER: &[i64] = &[
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    // Mounts, roots, namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel: modules, programs in it, its keys, its memory, its clock, its names.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
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
    libc::SYS_personality,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[];

/// Once everything is open.
const NO_MORE: &[i64] = &[
    libc::SYS_listen,
    libc::SYS_socketpair,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
];

/// Only where it calls others.
const CALLING: &[i64] = &[libc::SYS_bind, libc::SYS_connect];
/// Only where others call it.
const CALLED: &[i64] = &[libc::SYS_accept, libc::SYS_accept4];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Fallible<T> = Result<T, seccompiler::Error>;

/// Refuses what is never called, to this thread and those that it starts.
///
/// # Errors
/// Without seccomp, for the user.
pub(super) fn restrict() -> Result<(), String> {
    first().map_err(|e| no_seccomp(&e))
}

fn first() -> Fallible<()> {
    let mut rules = Rules::new();
    refuse(&mut rules, NEVER);
    refuse(&mut rules, NEVER_HERE);
    // Threads are no processes.
    let flag = u64::from(CLONE_THREAD.cast_unsigned());
    let process = condition(0, SeccompCmpOp::MaskedEq(flag), 0)?;
    refuse_if(&mut rules, libc::SYS_clone, &[vec![process]])?;
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(vec![condition(1, SeccompCmpOp::Eq, request)?]);
    }
    refuse_if(&mut rules, libc::SYS_ioctl, &typing)?;
    apply_filter(&program(rules, EPERM)?)?;
    // Its flags are in memory, where no filter looks: the C library then takes `clone`.
    let mut rules = Rules::new();
    refuse(&mut rules, &[libc::SYS_clone3]);
    apply_filter(&program(rules, ENOSYS)?)
}

/// What is refused once everything is open.
#[derive(Debug)]
pub(super) struct Later {
    calls_back: bool,
    calls_out: bool,
    listens: bool,
}

impl Later {
    pub(super) fn of(needs: &Needs) -> Self {
        Self {
            calls_back: needs.calls_back,
            calls_out: needs.calls_out,
            listens: needs.listens,
        }
    }

    /// Refuses it, to all threads.
    ///
    /// # Errors
    /// Without seccomp, for the user.
    pub(super) fn restrict(&self) -> Result<(), String> {
        self.rules()
            .and_then(|rules| apply_filter_all_threads(&program(rules, EPERM)?))
            .map_err(|e| no_seccomp(&e))
    }

    fn rules(&self) -> Fallible<Rules> {
        let mut rules = Rules::new();
        refuse(&mut rules, NO_MORE);
        if !self.calls_back && !self.calls_out {
            refuse(&mut rules, CALLING);
        }
        if !self.listens {
            refuse(&mut rules, CALLED);
        }
        let refused = self.sockets()?;
        refuse_if(&mut rules, libc::SYS_socket, &refused)?;
        Ok(rules)
    }

    /// The sockets that are refused: of other families; no streams, unless names are looked up;
    /// other questions to the kernel than whose a socket is.
    fn sockets(&self) -> Fallible<Vec<Vec<SeccompCondition>>> {
        let family = |op, family: i32| condition(0, op, u64::from(family.cast_unsigned()));
        let mut refused = Vec::new();
        let mut other = Vec::new();
        if self.listens {
            other.push(family(SeccompCmpOp::Ne, AF_NETLINK)?);
            refused.push(vec![
                family(SeccompCmpOp::Eq, AF_NETLINK)?,
                condition(2, SeccompCmpOp::Ne, SOCK_DIAG)?,
            ]);
        }
        if self.calls_back || self.calls_out {
            for internet in [AF_INET, AF_INET6] {
                other.push(family(SeccompCmpOp::Ne, internet)?);
                let kinds = NO_STREAMS.iter().filter(|_| !self.calls_out);
                for kind in kinds {
                    debug_assert_ne!(*kind, u64::from(SOCK_STREAM.cast_unsigned()));
                    refused.push(vec![
                        family(SeccompCmpOp::Eq, internet)?,
                        condition(1, SeccompCmpOp::MaskedEq(TYPE_MASK), *kind)?,
                    ]);
                }
            }
        }
        // Without an exception, every family is another.
        if !other.is_empty() {
            refused.push(other);
        }
        Ok(refused)
    }
}

fn no_seccomp(e: &seccompiler::Error) -> String {
    format!("seccomp: {e}")
}

fn condition(argument: u8, op: SeccompCmpOp, value: u64) -> Fallible<SeccompCondition> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value);
    condition.map_err(Into::into)
}

fn refuse(rules: &mut Rules, calls: &[i64]) {
    for call in calls {
        for number in numbers(*call) {
            rules.insert(number, Vec::new());
        }
    }
}

/// Refuses `call` where all conditions of one of the lists hold; always, if there is none.
fn refuse_if(rules: &mut Rules, call: i64, any: &[Vec<SeccompCondition>]) -> Fallible<()> {
    for number in numbers(call) {
        let any = any.iter().map(|all| SeccompRule::new(all.clone()));
        let any: Result<Vec<_>, _> = any.collect();
        rules.insert(number, any?);
    }
    Ok(())
}

fn numbers(call: i64) -> impl Iterator<Item = i64> {
    let x32 = cfg!(target_arch = "x86_64").then_some(call | X32);
    std::iter::once(call).chain(x32)
}

fn program(rules: Rules, error: i32) -> Fallible<BpfProgram> {
    let refused = SeccompAction::Errno(error.cast_unsigned());
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?;
    Ok(filter.try_into()?)
}

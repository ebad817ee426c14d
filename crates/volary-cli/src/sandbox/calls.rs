//! seccomp: system calls that no server makes once it has started.
//!
//! Lists what is refused (`EPERM`), not what is allowed: the C library, the standard library and six
//! crates choose system calls, and choose others with a new kernel or version. A list of what is
//! allowed would then fail in the field. Refused is what reaches other processes, programs, the
//! kernel or the network.

use super::needs::Needs;
use libc::{AF_INET, AF_INET6, AF_NETLINK, CLONE_THREAD, ENOSYS, EPERM, SOCK_STREAM};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// `NETLINK_SOCK_DIAG` (linux/netlink.h): whose a socket is.
const SOCK_DIAG: u64 = 4;
/// Linux's types of sockets that are not streams (`enum sock_type`).
const NO_STREAMS: [u64; 7] = [0, 2, 3, 4, 5, 6, 10];
/// The bits of a type that are not flags (`SOCK_TYPE_MASK`).
const TYPE_MASK: u64 = 0xF;
/// `TIOCSTI` and `TIOCLINUX` (asm-generic/ioctls.h): they put input into a terminal.
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
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    // Memory and queues that processes share by a number or a name.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
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

/// Only where a directory of the host is served. Landlock does not know these calls: they reach each file
/// that has a name.
const OF_TREES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    libc::SYS_utimensat,
    FILE_SETATTR,
];
#[cfg(target_arch = "x86_64")]
const OF_TREES_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_TREES_HERE: &[i64] = &[];
/// Newer calls, with one number on all processors (asm-generic/unistd.h).
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

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
    // New threads are allowed, new processes are not.
    let flag = u64::from(CLONE_THREAD.cast_unsigned());
    let process = condition(0, SeccompCmpOp::MaskedEq(flag), 0)?;
    refuse_if(&mut rules, libc::SYS_clone, &[vec![process]])?;
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(vec![condition(1, SeccompCmpOp::Eq, request)?]);
    }
    refuse_if(&mut rules, libc::SYS_ioctl, &typing)?;
    // A process aborts by a signal to itself, and sets its own limits.
    let own = u64::from(std::process::id());
    let another = condition(0, SeccompCmpOp::Ne, own)?;
    refuse_if(&mut rules, libc::SYS_tgkill, &[vec![another.clone()]])?;
    let no_default = condition(0, SeccompCmpOp::Ne, 0)?;
    let limits = [vec![another, no_default]];
    refuse_if(&mut rules, libc::SYS_prlimit64, &limits)?;
    apply_filter(&program(rules, EPERM)?)?;
    // A filter cannot see the flags of `clone3`. After ENOSYS the C library calls `clone`.
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
    has_tree: bool,
}

impl Later {
    pub(super) fn of(needs: &Needs) -> Self {
        Self {
            calls_back: needs.calls_back,
            calls_out: needs.calls_out,
            listens: needs.listens,
            has_tree: needs.has_tree(),
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
        if !self.has_tree {
            refuse(&mut rules, OF_TREES);
            refuse(&mut rules, OF_TREES_HERE);
        }
        let refused = self.sockets()?;
        refuse_if(&mut rules, libc::SYS_socket, &refused)?;
        Ok(rules)
    }

    /// Returns the sockets that are refused: of other families; no streams, unless names are looked up;
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
        // Without an exception every family is refused.
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

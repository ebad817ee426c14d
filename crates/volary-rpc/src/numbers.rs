//! Program numbers, and constants that several programs use.

/// A program and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The program's number.
    pub number: u32,
    /// Its version.
    pub version: u32,
}

/// The portmapper (RFC 1833, section 3).
pub const PORTMAP: Program = Program {
    number: 100_000,
    version: 2,
};
/// NFS (RFC 1813).
pub const NFS: Program = Program {
    number: 100_003,
    version: 3,
};
/// MOUNT (RFC 1813, appendix I).
pub const MOUNT: Program = Program {
    number: 100_005,
    version: 3,
};
/// NLM (RFC 1813, appendix II).
pub const NLM: Program = Program {
    number: 100_021,
    version: 4,
};

/// `NULL`, of every program.
pub const NULL: u32 = 0;
/// `PMAPPROC_GETPORT`.
pub const GETPORT: u32 = 3;
/// `IPPROTO_TCP`, in the portmapper's calls.
pub const TCP: u32 = 6;

/// `NFS3_FHSIZE`: the longest file handle, in bytes.
pub const FH_MAX: usize = 64;
/// Longest credential or verifier, in bytes (RFC 5531, section 8.2).
pub const AUTH_MAX: usize = 400;
/// Longest name of a machine in `AUTH_SYS`, in bytes (RFC 5531, appendix A).
pub const MACHINE_MAX: usize = 255;
/// Most supplementary groups in `AUTH_SYS`.
pub const GROUPS_MAX: usize = 16;
/// `AUTH_NONE`.
pub const AUTH_NONE: u32 = 0;
/// `AUTH_SYS`.
pub const AUTH_SYS: u32 = 1;
/// The bit in a fragment's head that marks the last one of a record (RFC 5531, section 11).
pub const LAST_FRAGMENT: u32 = 1 << 31;

//! Clients of others, each copying a tree in and out of each kind of volume that
//! `volary serve` serves: a FAT volume, a directory of the host and memory; and on mounts
//! of Linux's own clients a project is built, once with a volume as the root of the system.
//!
//! A few hundred files, so that every run can afford it; with `VOLARY_SUITES=all`
//! ten thousand:
//! `VOLARY_SUITES=all cargo test --profile soak -p volary-cli --test clients -- --test-threads=1`.

mod below;
mod linux;
mod locks;
mod nfs;
mod seen;
mod served;
mod smb;
mod suites;
mod tree;

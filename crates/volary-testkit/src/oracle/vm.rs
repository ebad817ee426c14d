//! Linux's own driver, in a guest that vmrun boots.

use super::host::write_sparse;
use super::{failed, listed};
use crate::tree::Tree;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a guest gets an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// For reading.
    ReadOnly,
    /// What it writes stays.
    Write,
}

/// A function of a guest's shell, `mounted`: mounts on `/mnt` the share `$1` of this host's SMB server at `$PORT`, as
/// `tester`, with the options `$2`. Linux gives a connection five seconds; on a busy host a guest may need more for its
/// first, and tries again.
pub const CIFS: &str = r#"
mounted() {
    for n in 1 2 3 4 5; do
        mount -t cifs -o "ip=10.0.2.2,port=$PORT,username=tester,password=pass,$2" "\\\\10.0.2.2\\$1" /mnt 2>/tmp/why && return
        grep -q 'in progress' /tmp/why || break
    done
    cat /tmp/why
    return 1
}
"#;

/// Returns where vmrun is: `$VOLARY_SHARED/tools/vmrun/vmrun`, or the same in
/// `../shared` beside the repository. `None`, with a line that says so, where
/// it is not or has not been set up.
///
/// # Panics
/// If `VOLARY_SHARED` is set, and it is not there.
pub fn find() -> Option<PathBuf> {
    let given = std::env::var_os("VOLARY_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let vmrun = given.clone().unwrap_or(beside).join("tools/vmrun/vmrun");
    if vmrun.is_file() && guest_is_set_up() {
        return Some(vmrun);
    }
    assert!(
        given.is_none() || vmrun.is_file(),
        "VOLARY_SHARED is set, but there is no {}",
        vmrun.display()
    );
    println!("skipped: Linux's own driver: no vmrun that has been set up");
    None
}

fn guest_is_set_up() -> bool {
    let dir = std::env::var_os("VMRUN_DIR").map_or_else(
        || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cache/vmrun"),
        PathBuf::from,
    );
    dir.join("linux.vmlinux").is_file() || dir.join("linux.cpio").is_file()
}

/// Returns a guest to be run, with one processor: with two, emulation computes half as much again, and a
/// kernel that patched its own code panicked.
pub fn command(vmrun: &Path) -> Command {
    let mut command = Command::new(vmrun);
    command.args(["--smp", "1"]);
    command
}

/// Runs a shell script as root in a guest with these images as `/dev/vda`,
/// `/dev/vdb`, ..., and with a directory of the host, for reading, at `/share`.
///
/// # Errors
/// What was printed, if the script failed.
pub fn script(
    vmrun: &Path,
    disks: &[(&Path, Disk)],
    share: Option<&Path>,
    script: &str,
) -> Result<String, String> {
    let mut command = command(vmrun);
    command.args(["--timeout", "400"]);
    for (image, how) in disks {
        let mut disk = image.as_os_str().to_owned();
        if *how == Disk::ReadOnly {
            disk.push(",ro");
        }
        command.arg("--disk").arg(disk);
    }
    if let Some(dir) = share {
        let mut dir = dir.as_os_str().to_owned();
        dir.push(",ro");
        command.arg("--share").arg(dir);
    }
    run(&mut command, script)
}

/// Runs a shell script as root in a guest that reaches this host's loop-back as
/// 10.0.2.2. `options` are vmrun's, `--timeout` and its seconds for one.
///
/// # Errors
/// What was printed, if the script failed or took longer.
pub fn with_network(vmrun: &Path, options: &[&str], script: &str) -> Result<String, String> {
    run(command(vmrun).arg("--net").args(options), script)
}

/// Boots a guest with these options for the script.
fn run(vmrun: &mut Command, script: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    std::fs::write(file.path(), that_says_so(script)).map_err(|e| e.to_string())?;
    boot(vmrun.arg("--script").arg(file.path()))
}

/// What a script prints first that [`boot`] is to run.
const BEGUN: &str = "the script begins\n";

/// Returns a script that says when it begins, for [`boot`].
pub(super) fn that_says_so(script: &str) -> String {
    format!("printf '{}'\n{script}", BEGUN.escape_default())
}

/// Runs vmrun with a script [`that_says_so`]; gives what that printed. A guest that
/// dies before its script begins (the emulator's kernel does, now and then) is
/// booted again, three times in all.
///
/// # Errors
/// What was printed, if the script failed.
pub(super) fn boot(vmrun: &mut Command) -> Result<String, String> {
    const BOOTS: u32 = 3;
    /// As vmrun says that the guest died.
    const DIED: i32 = 125;
    let mut boots = 0;
    loop {
        boots += 1;
        let output = vmrun.output().map_err(|e| e.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let begun = printed.strip_prefix(BEGUN);
        if output.status.success() {
            return Ok(begun.unwrap_or(&printed).to_owned());
        }
        let died = output.status.code() == Some(DIED) && begun.is_none();
        if !died || boots == BOOTS {
            return Err(failed(vmrun, &output));
        }
        println!("the guest died before its script began: once more");
    }
}

/// A volume's place, and how Linux mounts it.
#[derive(Clone, Copy, Debug)]
pub struct Volume<'a> {
    /// The image.
    pub image: &'a Path,
    /// What `mount -t` takes.
    pub kind: &'a str,
    /// What `mount -o` takes.
    pub options: &'a str,
}

impl<'a> Volume<'a> {
    /// FAT, mounted so that it shows names as we do, and times in UTC.
    pub fn fat(image: &'a Path) -> Self {
        Self {
            image,
            kind: "vfat",
            options: FAT_OPTIONS,
        }
    }
}

/// Options of a mount of FAT that shows names as we do, and times in UTC.
pub const FAT_OPTIONS: &str = "utf8,codepage=437,tz=UTC,umask=022";

/// Returns all that each image holds, as Linux reads it, in one run, however many there are.
///
/// # Errors
/// What was printed, if an image could not be mounted or read.
pub fn trees(vmrun: &Path, volumes: &[Volume<'_>]) -> Result<Vec<Tree>, String> {
    let pack = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let places = packed(pack.as_file(), volumes).map_err(|e| e.to_string())?;
    let mut command = command(vmrun);
    let mut disk = pack.path().as_os_str().to_owned();
    disk.push(",ro");
    command.args(["--timeout", "900", "--hostroot", "--disk"]);
    command.arg(disk);
    let mut words = String::new();
    for (volume, (at, len)) in volumes.iter().zip(places) {
        write!(words, " {at} {len} '{}' '{}'", volume.kind, volume.options)
            .map_err(|e| e.to_string())?;
    }
    let program = concat!(include_str!("common.py"), include_str!("linux.py"));
    let script = format!(
        "modprobe loop\nchroot /host /usr/bin/python3 -I - /dev/vda /tmp/volume{words} <<'END'\n{program}\nEND\n"
    );
    let printed = run(&mut command, &script)?;
    match listed::trees(&printed) {
        Ok(trees) if trees.len() == volumes.len() => Ok(trees),
        Ok(trees) => Err(format!("{} trees in:\n{printed}", trees.len())),
        Err(line) => Err(format!("'{line}' in:\n{printed}")),
    }
}

/// Writes images one after the other; where each begins, and its length.
fn packed(pack: &File, volumes: &[Volume<'_>]) -> io::Result<Vec<(u64, u64)>> {
    const APART: u64 = 1 << 20;
    let (mut places, mut at) = (Vec::new(), 0);
    for volume in volumes {
        let image = std::fs::read(volume.image)?;
        write_sparse(pack, at, &image)?;
        places.push((at, image.len() as u64));
        at = (at + image.len() as u64).next_multiple_of(APART);
    }
    Ok(places)
}

//! Linux's own driver, in a guest that vmrun boots.

use super::failed;
use crate::tree::{Leaf, Tree};
use std::path::{Path, PathBuf};
use std::process::Command;
use volary_core::{FileKind, Time};

/// How a guest gets an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// For reading.
    ReadOnly,
    /// What it writes stays.
    Write,
}

/// Where vmrun is: `$VOLARY_SHARED/tools/vmrun/vmrun`, or the same in
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
    let mut command = Command::new(vmrun);
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
    run(Command::new(vmrun).arg("--net").args(options), script)
}

/// Boots a guest with these options for the script.
fn run(vmrun: &mut Command, script: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    std::fs::write(file.path(), that_says_so(script)).map_err(|e| e.to_string())?;
    boot(vmrun.arg("--script").arg(file.path()))
}

/// What a script prints first that [`boot`] is to run.
const BEGUN: &str = "the script begins\n";

/// A script that says when it begins, for [`boot`].
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

/// Options of a mount that shows names as we do, and times in UTC.
pub const MOUNT: &str = "mount -t vfat -o utf8,codepage=437,tz=UTC,umask=022";

/// All that each FAT image holds, as Linux reads it, in one run.
///
/// # Errors
/// What was printed, if an image could not be mounted or read.
pub fn trees(vmrun: &Path, images: &[&Path]) -> Result<Vec<Tree>, String> {
    let ways: Vec<_> = images.iter().map(|&image| (image, MOUNT)).collect();
    trees_of(vmrun, &ways)
}

/// All that each image holds, as Linux reads it, in one run; each with the command that
/// mounts it, without device and place.
///
/// # Errors
/// What was printed, if an image could not be mounted or read.
pub fn trees_of(vmrun: &Path, images: &[(&Path, &str)]) -> Result<Vec<Tree>, String> {
    let disks: Vec<_> = images.iter().map(|&(i, _)| (i, Disk::ReadOnly)).collect();
    let each = images.iter().zip('a'..='z');
    let text: String = each
        .map(|((_, mount), d)| format!("d=vd{d}\n{mount},ro /dev/$d /mnt || exit 1\n{LIST}"))
        .collect();
    let printed = script(vmrun, &disks, None, &text)?;
    let trees = parse(&printed);
    if trees.len() == images.len() {
        Ok(trees)
    } else {
        Err(format!("{} trees in:\n{printed}", trees.len()))
    }
}

/// Prints a disk's tree and unmounts it.
const LIST: &str = r#"echo "D $d"
cd /mnt
find . -mindepth 1 -exec stat -c 'S %F|%s|%Y|%a|%u|%g|%h|%n' {} +
find . -type f -exec sha256sum {} + | sed 's/^/H /'
find . -type l | while IFS= read -r l; do
  printf 'H %s  %s\n' "$(readlink -n "$l" | sha256sum | cut -d' ' -f1)" "$l"
done
cd /
umount /mnt
"#;

/// Reads what [`LIST`] prints.
pub(super) fn parse(printed: &str) -> Vec<Tree> {
    let mut trees: Vec<Tree> = Vec::new();
    for line in printed.lines() {
        let Some((word, rest)) = line.split_once(' ') else {
            continue;
        };
        match (word, trees.last_mut()) {
            ("D", _) => trees.push(Tree::default()),
            ("S", Some(tree)) => {
                if let Some((path, leaf)) = parse_stat(rest) {
                    tree.0.insert(path, leaf);
                }
            }
            ("H", Some(tree)) => {
                let (hex, path) = rest.split_once("  ./").unwrap_or((rest, ""));
                if let Some(leaf) = tree.0.get_mut(path.as_bytes()) {
                    leaf.hash = parse_hash(hex);
                }
            }
            _ => {}
        }
    }
    trees
}

fn parse_stat(line: &str) -> Option<(Vec<u8>, Leaf)> {
    let mut fields = line.splitn(8, '|');
    let kind = match fields.next()? {
        "directory" => FileKind::Dir,
        "symbolic link" => FileKind::Symlink,
        "fifo" => FileKind::Fifo,
        "socket" => FileKind::Socket,
        "character special file" => FileKind::CharDevice,
        "block special file" => FileKind::BlockDevice,
        _ => FileKind::File,
    };
    let size: u64 = fields.next()?.parse().ok()?;
    let mtime = Time::from_secs(fields.next()?.parse().ok()?);
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let mut number = || fields.next()?.parse::<u32>().ok();
    let (uid, gid, links) = (number()?, number()?, number()?);
    let path = fields.next()?.strip_prefix("./")?;
    let leaf = Leaf {
        kind,
        size: if kind == FileKind::File { size } else { 0 },
        hash: None,
        owner: Some((mode, uid, gid)),
        links: Some(links),
        mtime: Some(mtime),
    };
    Some((path.as_bytes().to_vec(), leaf))
}

fn parse_hash(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(hash)
}

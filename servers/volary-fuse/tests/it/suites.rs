//! Other people's suites of POSIX behaviour, on mounted volumes: `pjdfstest`
//! 0.2 and `fsx` 0.3, which this test expects among the programs
//! (`cargo install pjdfstest fsx`). They take minutes and want root, so they run
//! with `VOLARY_SUITES=1` only:
//! `VOLARY_SUITES=1 cargo test --profile soak -p volary-fuse --test it suites`.
//! With `VOLARY_SUITES=all`, `fsx` runs as long on FFS and Cedar as on the others.

use crate::mount::{Mount, can_mount};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use volary_fuse::MountOptions;

/// Returns whether to run; says so if not.
fn wanted() -> bool {
    let wanted = std::env::var_os("VOLARY_SUITES").is_some();
    if !wanted {
        eprintln!("SKIPPED: set VOLARY_SUITES=1 to run it");
    }
    wanted && can_mount()
}

/// Returns a mount that lets the suites' users in, and honours what they set.
fn open_to_all(write_back: bool) -> MountOptions {
    MountOptions {
        allow_other: true,
        suid: true,
        dev: true,
        write_back: Some(write_back),
        ..MountOptions::default()
    }
}

/// Runs a program to its end; its words if it fails.
fn run(command: &mut Command) -> String {
    let done = command
        .output()
        .expect("the program; install it with cargo install");
    let words = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}:\n{words}{errors}");
    words
}

/// All of pjdfstest that a volume with modes, links and devices can pass.
fn pjdfstest(place: &Path, config: &str) {
    let config = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/suites")
        .join(config);
    let elsewhere = TempDir::new_in("/dev/shm").unwrap();
    let mut command = Command::new("pjdfstest");
    command
        .arg("-c")
        .arg(config)
        .arg("-s")
        .arg(elsewhere.path())
        .arg("-p")
        .arg(place);
    let words = run(&mut command);
    for line in words
        .lines()
        .filter(|l| l.contains("skipped") || l.starts_with('\t'))
    {
        println!("{line}");
    }
}

/// Runs of `fsx` on one volume, and operations of each.
const RUNS: u32 = 8;
const RUN_LEN: u32 = 5_000;

/// Operations of the only run on a volume that has its turn with `all`.
const SHORT: u32 = 2_000;

/// Reads, writes, mapped ones among them, and cuts at random, 40,000 times in
/// all. In several runs, each with a seed and a file of its own: `fsx` does not
/// unmap all that it maps, so that the kernel takes the longer over each cut the
/// more operations came before it in the same run.
fn fsx(place: &Path, first_seed: u32) {
    for seed in first_seed..first_seed + RUNS {
        fsx_once(place, seed, RUN_LEN);
    }
}

/// One run, with a file of its own.
fn fsx_once(place: &Path, seed: u32, len: u32) {
    let artifacts = TempDir::new().unwrap();
    let mut command = Command::new("fsx");
    command
        .args(["-N", &len.to_string(), "-S", &seed.to_string(), "-P"])
        .arg(artifacts.path());
    run(command.arg(place.join(format!("fsx-{seed}"))));
}

/// As [`fsx`] with `VOLARY_SUITES=all`, and one short run else, on volumes
/// whose check then finds nothing.
fn fsx_leaves_clean(mount: impl Fn(&MountOptions) -> Option<Mount>, first_seed: u32) {
    for (write_back, seed) in [(false, first_seed), (true, first_seed + 100)] {
        let mount = mount(&open_to_all(write_back)).unwrap();
        if std::env::var_os("VOLARY_SUITES").is_some_and(|mode| mode == "all") {
            fsx(mount.mounted.path(), seed);
        } else {
            fsx_once(mount.mounted.path(), seed, SHORT);
        }
        mount.leave_clean();
    }
}

#[test]
fn pjdfstest_finds_nothing_on_a_volume_in_memory() {
    if wanted() {
        for write_back in [false, true] {
            let mount = Mount::new(&open_to_all(write_back)).unwrap();
            pjdfstest(mount.mounted.path(), "pjdfstest.toml");
        }
    }
}

#[test]
fn fsx_finds_nothing_on_a_volume_in_memory() {
    if wanted() {
        for (write_back, seed) in [(false, 100), (true, 200)] {
            let mount = Mount::new(&open_to_all(write_back)).unwrap();
            fsx(mount.mounted.path(), seed);
        }
    }
}

#[test]
fn pjdfstest_finds_only_missing_links_on_a_fat_volume_with_the_extension() {
    if wanted() {
        let mount = Mount::of_fat(4 << 30, &open_to_all(false)).unwrap();
        pjdfstest(mount.mounted.path(), "pjdfstest-fat.toml");
    }
}

#[test]
fn fsx_finds_nothing_on_a_fat_volume() {
    if wanted() {
        for (write_back, seed) in [(false, 300), (true, 400)] {
            let mount = Mount::of_fat(64 << 20, &open_to_all(write_back)).unwrap();
            fsx(mount.mounted.path(), seed);
        }
    }
}

/// All of pjdfstest on an FFS volume of this kind, which is then clean.
fn pjdfstest_on_ffs(kind: &str, how: &str, write_back: bool, config: &str) {
    let mount = Mount::of_ffs(kind, how, 512 << 20, &open_to_all(write_back)).unwrap();
    pjdfstest(mount.mounted.path(), config);
    mount.leave_clean();
}

#[test]
fn pjdfstest_finds_nothing_on_ffs2_volumes() {
    if wanted() {
        for write_back in [false, true] {
            pjdfstest_on_ffs("ffs2", "", write_back, "pjdfstest.toml");
        }
        pjdfstest_on_ffs("ffs2", "order=big", false, "pjdfstest.toml");
    }
}

#[test]
fn pjdfstest_finds_only_the_end_of_time_on_ffs1_volumes() {
    if wanted() {
        for how in ["", "order=big"] {
            pjdfstest_on_ffs("ffs1", how, false, "pjdfstest-ffs1.toml");
        }
    }
}

#[test]
fn pjdfstest_finds_only_short_times_on_volumes_of_4_3bsd() {
    if wanted() {
        for how in ["old", "old,order=big"] {
            pjdfstest_on_ffs("ffs1", how, false, "pjdfstest-43bsd.toml");
        }
    }
}

#[test]
fn fsx_finds_nothing_on_ffs2_volumes() {
    if wanted() {
        for (how, seed) in [("", 700), ("order=big", 1300)] {
            fsx_leaves_clean(|fuse| Mount::of_ffs("ffs2", how, 64 << 20, fuse), seed);
        }
    }
}

#[test]
fn fsx_finds_nothing_on_ffs1_volumes() {
    if wanted() {
        for (how, seed) in [("", 900), ("order=big", 1500)] {
            fsx_leaves_clean(|fuse| Mount::of_ffs("ffs1", how, 64 << 20, fuse), seed);
        }
    }
}

#[test]
fn fsx_finds_nothing_on_volumes_of_4_3bsd() {
    if wanted() {
        for (how, seed) in [("old", 1700), ("old,order=big", 1900)] {
            fsx_leaves_clean(|fuse| Mount::of_ffs("ffs1", how, 64 << 20, fuse), seed);
        }
    }
}

/// On a volume that has room for a file of 2 GiB that is nothing but a gap: they
/// take room here.
#[test]
fn pjdfstest_finds_nothing_on_a_cedar_volume() {
    if wanted() {
        let mount = Mount::of_cedar(3 << 30, &open_to_all(false)).unwrap();
        pjdfstest(mount.mounted.path(), "pjdfstest.toml");
        mount.leave_clean();
    }
}

#[test]
fn fsx_finds_nothing_on_a_cedar_volume() {
    if wanted() {
        fsx_leaves_clean(|how| Mount::of_cedar(64 << 20, how), 1100);
    }
}

#[test]
fn pjdfstest_finds_nothing_on_a_directory_of_the_host_without_handles() {
    if wanted() {
        let mount = Mount::of_host(false, &open_to_all(false)).unwrap();
        pjdfstest(mount.mounted.path(), "pjdfstest.toml");
    }
}

#[test]
fn fsx_finds_nothing_on_a_directory_of_the_host() {
    if wanted() {
        for (write_back, seed) in [(false, 500), (true, 600)] {
            let mount = Mount::of_host(true, &open_to_all(write_back)).unwrap();
            fsx(mount.mounted.path(), seed);
        }
    }
}

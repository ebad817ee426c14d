//! The house rules that a program can hold us to.

mod circles;
mod parameters;
mod types;
mod words;

use crate::run::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may depend on whom, in the program itself; "dev" rows are for tests only.
/// A row that is not here is an edge that the design does not have: talk first.
const EDGES: &[(&str, &[&str], &[&str])] = &[
    ("volary-core", &[], &[]),
    ("volary-block", &["volary-core"], &[]),
    (
        "volary-bulk",
        &["volary-core", "volary-session"],
        &[
            "volary-testkit",
            "volary-block",
            "volary-cedar",
            "volary-ext4",
            "volary-fat",
            "volary-ffs",
            "volary-host",
            "volary-iso9660",
            "volary-mem",
            "volary-ntfs",
            "volary-sim",
        ],
    ),
    (
        "volary-copy",
        &["volary-core", "volary-session"],
        &["volary-block", "volary-mem"],
    ),
    ("volary-ondisk", &["volary-core", "volary-block"], &[]),
    (
        "volary-driver",
        &["volary-core", "volary-ondisk"],
        &["volary-block", "volary-testkit", "volary-layers"],
    ),
    (
        "volary-session",
        &["volary-core"],
        &["volary-mem", "volary-testkit"],
    ),
    (
        "volary-layers",
        &["volary-core"],
        &["volary-mem", "volary-testkit"],
    ),
    ("volary-mem", &["volary-core"], &["volary-testkit"]),
    (
        "volary-host",
        &["volary-core", "volary-block"],
        &["volary-testkit"],
    ),
    (
        "volary-fat",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit", "volary-session"],
    ),
    (
        "volary-cedar",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit", "volary-sim"],
    ),
    (
        "volary-ffs",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit", "volary-sim"],
    ),
    (
        "volary-v7",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit", "volary-sim"],
    ),
    (
        "volary-iso9660",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit"],
    ),
    (
        "volary-ext4",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit"],
    ),
    (
        "volary-ntfs",
        &["volary-core", "volary-block", "volary-ondisk"],
        &["volary-testkit"],
    ),
    (
        "volary-fuse",
        &["volary-core", "volary-session"],
        &[
            "volary-testkit",
            "volary-mem",
            "volary-cedar",
            "volary-fat",
            "volary-ffs",
            "volary-host",
            "volary-block",
        ],
    ),
    (
        "volary-smb",
        &["volary-core", "volary-session"],
        &[
            "volary-testkit",
            "volary-block",
            "volary-fat",
            "volary-host",
            "volary-mem",
        ],
    ),
    ("volary-rpc", &["volary-core"], &[]),
    (
        "volary-nfs-client",
        &["volary-core", "volary-rpc"],
        &[
            "volary-testkit",
            "volary-block",
            "volary-fat",
            "volary-mem",
            "volary-host",
            "volary-session",
            "volary-nfs",
        ],
    ),
    (
        "volary-nfs",
        &["volary-core", "volary-rpc", "volary-session"],
        &["volary-testkit", "volary-mem", "volary-fat", "volary-block"],
    ),
    (
        "volary-test",
        &[
            "volary-core",
            "volary-fuse",
            "volary-layers",
            "volary-nfs",
            "volary-session",
            "volary-sim",
            "volary-smb",
            "volary-smb-client",
        ],
        &["volary-mem"],
    ),
    (
        "volary-testkit",
        &[
            "volary-core",
            "volary-block",
            "volary-session",
            "volary-mem",
            "volary-layers",
            "volary-sim",
            "volary-test",
        ],
        &[],
    ),
    (
        "volary-plugin",
        &["volary-core"],
        &["volary-example-memory", "volary-mem", "volary-test"],
    ),
    ("volary-sim", &["volary-core"], &[]),
    ("volary-smb-client", &[], &[]),
    (
        "volary",
        &[
            "volary-core",
            "volary-block",
            "volary-bulk",
            "volary-copy",
            "volary-session",
            "volary-sim",
            "volary-layers",
            "volary-cedar",
            "volary-ext4",
            "volary-fat",
            "volary-ffs",
            "volary-v7",
            "volary-iso9660",
            "volary-ntfs",
            "volary-mem",
            "volary-host",
            "volary-nfs-client",
            "volary-plugin",
            "volary-fuse",
            "volary-nfs",
            "volary-smb",
            "volary-smb-client",
        ],
        &["volary-testkit", "volary-example-tar"],
    ),
    ("libvolary", &["volary"], &[]),
    (
        "volary-bench",
        &["volary", "volary-cedar", "volary-core", "volary-sim"],
        &[],
    ),
    (
        "volary-cli",
        &["volary", "volary-bench", "volary-sim", "volary-test"],
        &["volary-driver", "volary-testkit"],
    ),
    (
        "volary-python",
        &["volary", "volary-driver", "volary-test"],
        &[],
    ),
    (
        "volary-fuzz",
        &[
            "volary-block",
            "volary-core",
            "volary-fuse",
            "volary-layers",
            "volary-session",
            "volary-mem",
            "volary-nfs",
            "volary-nfs-client",
            "volary-plugin",
            "volary-smb",
            "volary-cedar",
            "volary-ext4",
            "volary-fat",
            "volary-ffs",
            "volary-v7",
            "volary-iso9660",
            "volary-ntfs",
        ],
        &[],
    ),
    (
        "volary-example-tar",
        &["volary-driver"],
        &["volary-block", "volary-testkit"],
    ),
    (
        "volary-example-zip",
        &["volary-driver"],
        &["volary-block", "volary-test"],
    ),
    (
        "volary-example-kv",
        &["volary", "volary-driver"],
        &["volary-testkit"],
    ),
    (
        "volary-example-memory",
        &["volary-core", "volary-mem", "volary-plugin"],
        &[],
    ),
    (
        "volary-with-tar",
        &["volary-cli", "volary-example-kv", "volary-example-tar"],
        &[],
    ),
    ("xtask", &[], &[]),
];

/// Files may be this long; see [`LONG_FILES`].
const FILE_LINES_MAX: usize = 600;

/// Characters of a line of a page.
const PAGE_WIDTH: usize = 100;

/// Files that are longer, and may not grow. Empty is the aim.
const LONG_FILES: &[(&str, usize)] = &[];

/// Modules that every driver has, in whichever room, so that whoever knows one knows all.
const DRIVER_SKELETON: &[&str] = &["lib", "fs"];

/// Those that every driver of an on-disk format has besides, which has a FORMAT.md.
const FORMAT_SKELETON: &[&str] = &["ondisk", "volume", "check", "dump"];

#[test]
fn the_crate_graph_has_only_the_edges_of_the_design() {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let meta: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let packages = meta["packages"].as_array().expect("packages");
    for package in packages {
        let name = package["name"].as_str().expect("name");
        let row = EDGES.iter().find(|r| r.0 == name);
        let (_, deps, dev) = row.unwrap_or_else(|| panic!("{name} has no row in EDGES"));
        for dep in package["dependencies"].as_array().expect("dependencies") {
            let to = dep["name"].as_str().expect("name");
            if !to.starts_with("volary") {
                continue;
            }
            let for_tests = dep["kind"].as_str() == Some("dev");
            let allowed = deps.contains(&to) || for_tests && dev.contains(&to);
            assert!(allowed, "{name} -> {to} is not an edge of the design");
        }
    }
    assert_eq!(packages.len(), EDGES.len(), "a row of EDGES has no crate");
}

#[test]
fn releases_check_sums() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let parts: Vec<&str> = text.split("\n[").collect();
    let has = |name: &str, line: &str| {
        let part = parts.iter().find(|part| part.starts_with(name));
        part.is_some_and(|part| part.lines().any(|l| l == line))
    };
    assert!(has("profile.release]", "overflow-checks = true"));
    for part in parts.iter().filter(|p| p.starts_with("profile.release.")) {
        let allowed = part.starts_with("profile.release.package.fuser]");
        assert!(
            allowed || !part.contains("overflow-checks = false"),
            "{part}"
        );
    }
}

#[test]
fn crates_for_others_say_what_they_are() {
    let members = ["crates", "drivers", "servers"];
    let manifests = members
        .iter()
        .flat_map(|dir| files_below(&root().join(dir), "toml"));
    let manifests = manifests.filter(|path| path.ends_with("Cargo.toml"));
    for manifest in
        manifests.filter(|path| !path.components().any(|c| c.as_os_str() == "templates"))
    {
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        if text.contains("publish = false") {
            continue;
        }
        for key in [
            "description = ",
            "license",
            "readme = ",
            "keywords = ",
            "categories",
        ] {
            let has = text.lines().any(|line| line.starts_with(key));
            assert!(has, "{} has no {key}", manifest.display());
        }
        let readme = manifest.with_file_name("README.md");
        assert!(readme.is_file(), "{} is missing", readme.display());
    }
}

#[test]
fn source_files_can_be_read_at_a_sitting() {
    let mut long = Vec::new();
    for file in sources() {
        let lines = std::fs::read_to_string(&file)
            .expect("source")
            .lines()
            .count();
        let name = relative(&file);
        let max = LONG_FILES
            .iter()
            .find(|f| f.0 == name)
            .map_or(FILE_LINES_MAX, |f| f.1);
        if lines > max {
            long.push(format!("{name}: {lines} lines, at most {max}"));
        }
    }
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

#[test]
fn every_driver_is_laid_out_like_the_others() {
    for driver in std::fs::read_dir(root().join("drivers")).expect("drivers") {
        let dir = driver.expect("entry").path();
        let files = files_below(&dir.join("src"), "rs");
        let has = |module: &str| {
            let is_it = |file: &PathBuf| {
                file.ends_with(format!("{module}.rs")) || file.ends_with(format!("{module}/mod.rs"))
            };
            files.iter().any(is_it)
        };
        let more = if has("ondisk") { FORMAT_SKELETON } else { &[] };
        for part in DRIVER_SKELETON.iter().chain(more) {
            assert!(has(part), "{} has no module {part}", relative(&dir));
        }
        let has_page = dir.join("FORMAT.md").exists();
        assert!(
            has_page || !has("ondisk"),
            "{} lacks FORMAT.md",
            relative(&dir)
        );
    }
}

#[test]
fn every_finding_is_in_the_drivers_format_page() {
    for driver in std::fs::read_dir(root().join("drivers")).expect("drivers") {
        let dir = driver.expect("entry").path();
        let Ok(page) = std::fs::read_to_string(dir.join("FORMAT.md")) else {
            continue;
        };
        for code in finding_codes(&dir.join("src/check")) {
            assert!(
                page.contains(&format!("`{code}`")),
                "{}: {code} is not in FORMAT.md",
                relative(&dir)
            );
        }
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("page");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let dir = page.parent().expect("folder");
            assert!(
                dir.join(target).exists(),
                "{}: {link} leads nowhere",
                relative(&page)
            );
        }
    }
}

/// Tables and what is set as it stands have the width that they need.
#[test]
fn files_that_pages_name_are_there() {
    let mut named = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let files = text
            .split('`')
            .filter(|word| word.contains("/src/") && word.ends_with(".rs") && !word.contains(' '));
        for file in files {
            named += 1;
            let is_there = [root(), page.parent().unwrap().to_path_buf()]
                .iter()
                .any(|from| from.join(file).exists());
            assert!(is_there, "{}: there is no {file}", relative(&page));
        }
    }
    assert!(named > 20, "only {named} files are named");
}

#[test]
fn pages_have_lines_that_fit_a_screen() {
    let mut wrong = Vec::new();
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("page");
        let prose = |line: &&str| !line.starts_with('|') && !line.starts_with("    ");
        let is_long = |line: &&str| line.chars().count() > PAGE_WIDTH;
        let long = text.lines().filter(prose).filter(is_long);
        wrong.extend(long.map(|line| format!("{}: {line}", relative(&path))));
    }
    assert!(
        wrong.is_empty(),
        "lines of more than {PAGE_WIDTH} characters:\n{}",
        wrong.join("\n")
    );
}

/// CI sets the variable for tests with `suites` in their names: others that ask for it never run.
#[test]
fn tests_that_skip_themselves_without_suites_are_among_the_suites() {
    for file in sources() {
        let text = std::fs::read_to_string(&file).expect("source");
        let asks = text.contains(concat!("VOLARY_SUITES", "\").is_none()"))
            || text.contains(concat!("without VOLARY", "_SUITES"));
        let path = relative(&file);
        let is_among = path.contains("suites") || text.contains("mod suites {");
        assert!(
            !asks || is_among,
            "{path}: move its tests into a module suites"
        );
    }
}

/// Returns the values of `code: "…"` under `dir`.
fn finding_codes(dir: &Path) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for file in files_below(dir, "rs") {
        let text = std::fs::read_to_string(file).expect("source");
        for rest in text.split("code: \"").skip(1) {
            codes.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    codes
}

fn sources() -> Vec<PathBuf> {
    [
        "crates", "drivers", "servers", "examples", "python", "xtask", "fuzz",
    ]
    .iter()
    .flat_map(|dir| files_below(&root().join(dir), "rs"))
    .collect()
}

fn pages() -> Vec<PathBuf> {
    let folders = ["bench", "crates", "drivers", "python", "servers"];
    let below = |dir: &&str| files_below(&root().join(dir), "md");
    let mut pages: Vec<PathBuf> = folders.iter().flat_map(below).collect();
    for entry in std::fs::read_dir(root()).expect("root") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|e| e == "md") {
            pages.push(path);
        }
    }
    pages
}

fn files_below(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("entry").path();
        if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}

/// Returns the folders of the program's crates.
fn crates() -> Vec<PathBuf> {
    let folder = |dir| std::fs::read_dir(root().join(dir)).expect("crates");
    let all = ["crates", "drivers", "servers"]
        .into_iter()
        .flat_map(folder);
    let mut all: Vec<_> = all.map(|entry| entry.expect("entry").path()).collect();
    all.sort();
    all
}

/// Tells a figure, for `cargo xtask tidy`.
fn tell(what: &str, count: usize) {
    println!("{count:6} {what}");
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

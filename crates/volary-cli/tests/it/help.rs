//! Help, manual pages and completions have all that there is.

use crate::examples::verbs;
use crate::sandbox::Sandbox;
use serde_json::Value;
use std::collections::BTreeSet;

fn json(sandbox: &Sandbox, line: &str) -> Vec<Value> {
    serde_json::from_str(&sandbox.run(line).ok()).unwrap()
}

fn names(specs: &Value) -> impl Iterator<Item = &str> {
    let all = specs.as_array().unwrap().iter();
    all.map(|spec| spec["name"].as_str().unwrap())
}

/// Returns whether a table in `text` has a row of this name.
fn has_row(text: &str, name: &str) -> bool {
    let rows = text.lines().filter_map(|line| line.strip_prefix("  "));
    rows.filter_map(|row| row.strip_prefix(name))
        .any(|rest| rest.is_empty() || rest.starts_with(['=', ' ']))
}

#[test]
fn help_lists_the_options_of_each_format() {
    let sandbox = Sandbox::empty();
    let formats = json(&sandbox, "formats --json");
    let text = sandbox.run("formats").ok();
    for (verb, key, of_fat) in [
        ("mkfs", "mkfs_options", "cluster"),
        ("tune", "tune_options", ""),
        ("mount", "attach_options", "umask"),
        ("serve", "attach_options", "memory"),
        ("fsck", "fsck_options", "lost"),
        ("dump", "dump_topics", "chain"),
    ] {
        let help = sandbox.run_words(&[verb, "--help"]).ok();
        for format in &formats {
            for name in names(&format[key]) {
                let of = &format["name"];
                assert!(has_row(&help, name), "{verb} --help lacks {name} of {of}");
                assert!(has_row(&text, name), "formats lacks {name} of {of}");
            }
        }
        let fat = names(&formats[0][key]).any(|name| name == of_fat);
        assert!(fat || of_fat.is_empty(), "{verb}: fat has no {of_fat}");
    }
    let all: Vec<_> = formats
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        all,
        [
            "fat",
            "iso9660",
            "cedar",
            "ffs",
            "ext4",
            "ntfs",
            "v7",
            "nfs://HOST/EXPORT",
            "plugin"
        ]
    );
}

/// What the commands say that they know, when they are told something else.
#[test]
fn what_help_lists_is_what_the_commands_know() {
    let sandbox = Sandbox::new();
    for kind in ["cedar", "ffs2", "sysv"] {
        sandbox
            .run(&format!("mkfs -q -t {kind} --size 16M {kind}.img"))
            .ok();
    }
    let formats = json(&sandbox, "formats --json");
    for (image, format) in [
        ("disk.img", 0),
        ("cedar.img", 2),
        ("ffs2.img", 3),
        ("sysv.img", 6),
    ] {
        for (line, code, key) in [
            ("ls -o bogus", 2, "attach_options"),
            ("fsck -n -o bogus", 16, "fsck_options"),
            ("tune -o bogus", 2, "tune_options"),
        ] {
            let said = sandbox.run(&format!("{line} {image}")).fails(code);
            let Some((_, known)) = said.trim_end().split_once("known are: ") else {
                assert_eq!(names(&formats[format][key]).count(), 0, "{said}");
                continue;
            };
            let known: BTreeSet<_> = known.split(", ").filter(|name| !name.is_empty()).collect();
            let listed: BTreeSet<_> = names(&formats[format][key]).collect();
            assert_eq!(known, listed, "{line} {image}");
        }
    }
}

#[test]
fn layers_are_listed_as_they_are_known() {
    let sandbox = Sandbox::new();
    let said = sandbox.run("ls --layer bogus disk.img").fails(2);
    let (_, known) = said.trim_end().split_once("known are: ").unwrap();
    let known: Vec<_> = known.split(", ").collect();
    let listed = json(&sandbox, "layers --json");
    let listed: Vec<_> = listed
        .iter()
        .map(|layer| layer["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, known);
    let text = sandbox.run("layers").ok();
    let pages = ["mount --help", "serve --help", "formats"].map(|line| sandbox.run(line).ok());
    for name in listed {
        assert!(
            has_row(&text, name) && pages.iter().all(|page| has_row(page, name)),
            "{name}"
        );
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn help_is_a_command_too() {
    let sandbox = Sandbox::empty();
    for (line, same) in [
        ("help", "--help"),
        ("help ls", "ls --help"),
        ("help torture run", "torture run --help"),
    ] {
        assert_eq!(sandbox.run(line).ok(), sandbox.run(same).ok(), "{line}");
    }
}

/// Returns the long options in a text of help.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',', '=', '[']));
    words
        .filter(|word| word.len() > 3 && word.starts_with("--"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn manual_pages_and_completions_have_each_option_of_each_command() {
    let sandbox = Sandbox::empty();
    let mut all: Vec<String> = verbs(&sandbox);
    all.extend(
        [
            "torture run",
            "torture kill",
            "torture replay",
            "bench paper",
            "bench peers",
        ]
        .map(String::from),
    );
    let scripts =
        ["bash", "zsh", "fish"].map(|shell| sandbox.run_words(&["completions", shell]).ok());
    for verb in all {
        let help = sandbox.run(&format!("{verb} --help")).ok();
        let page = format!("pages/volary-{}.1", verb.replace(' ', "-"));
        let page = String::from_utf8(sandbox.read(&page)).unwrap();
        for option in options(&help) {
            let plain = page.replace('\\', "");
            assert!(plain.contains(&option), "the page of {verb} lacks {option}");
            let name = &option[2..];
            assert!(
                scripts.iter().all(|script| script.contains(name)),
                "{verb} {option}"
            );
        }
        assert!(page.contains("EXIT STATUS"), "{verb}");
    }
    let first = String::from_utf8(sandbox.read("pages/volary.1")).unwrap();
    for name in ["NO_COLOR", "VOLARY_PASSWORD", "SOURCE_DATE_EPOCH"] {
        assert!(first.replace('\\', "").contains(name), "{name}");
    }
}

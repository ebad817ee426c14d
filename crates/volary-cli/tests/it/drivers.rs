//! `volary new driver`: what it writes compiles, and its tests hold.

use crate::sandbox::Sandbox;
use std::path::Path;
use std::process::Command;

const TEMPLATES: [&str; 5] = ["archive", "block", "kv", "remote", "layer"];

/// Writes a crate with each of these templates, and runs its tests as whoever has volary's sources would.
fn hold(templates: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sandbox = Sandbox::empty();
    let mut members = Vec::new();
    for template in templates {
        let name = format!("my-{template}");
        let volary = sources.to_str().unwrap();
        let words = [
            "new",
            "driver",
            &name,
            "--template",
            template,
            "--volary",
            volary,
        ];
        assert!(sandbox.run_words(&words).ok().contains("cargo test"));
        let main = std::fs::read_to_string(sandbox.path(&name).join("src/main.rs")).unwrap();
        assert!(main.contains("volary_cli::run("), "{main}");
        members.push(format!("{name:?}"));
    }
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{}]\n",
        members.join(", ")
    );
    std::fs::write(sandbox.path("Cargo.toml"), workspace).unwrap();
    // The versions that are here already.
    std::fs::copy(sources.join("Cargo.lock"), sandbox.path("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "test",
        "--offline",
        "--quiet",
        "--workspace",
        "--no-default-features",
        "--lib",
    ]);
    cargo.env(
        "CARGO_TARGET_DIR",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates"),
    );
    cargo
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(sandbox.path(""));
    let out = cargo.output().unwrap();
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(out.status.success(), "{told}");
    assert_eq!(
        told.matches("test result: ok").count(),
        templates.len(),
        "{told}"
    );
}

#[test]
fn a_driver_that_was_begun_with_a_template_compiles_and_reads() {
    hold(&TEMPLATES[..1]);
}

#[test]
fn a_name_that_is_none_writes_nothing() {
    let sandbox = Sandbox::empty();
    for name in [
        "",
        "a",
        "Zip",
        "../zip",
        "my_fs",
        "my--fs",
        "-fs",
        "volary-x",
        "std",
        "zip\u{e9}",
    ] {
        let run = sandbox.run_words(&["new", "driver", "--", name]);
        assert_ne!(run.code, 0, "{name}");
        assert_eq!(run.err.lines().count(), 1, "{name}: {}", run.err);
    }
    sandbox.run_words(&["new", "driver", "zip"]).ok();
    let again = sandbox.run_words(&["new", "driver", "zip"]);
    assert!(
        again.code != 0 && again.err.contains("zip"),
        "{}",
        again.err
    );
}

#[test]
fn a_crate_can_be_called_other_than_its_format() {
    let sandbox = Sandbox::empty();
    let out = sandbox.run_words(&["new", "driver", "zip", "--crate", "zip-volume"]);
    assert!(out.ok().starts_with("zip-volume/ is a crate"));
    let read = |file: &str| std::fs::read_to_string(sandbox.path("zip-volume").join(file)).unwrap();
    assert!(read("Cargo.toml").contains("name = \"zip-volume\""));
    assert!(read("src/main.rs").contains("zip_volume::ZIP"));
    assert!(read("src/lib.rs").contains("&[\"zip\"]"));
    let run = sandbox.run_words(&["new", "driver", "zip", "--crate", "../zip"]);
    assert!(run.err.contains("'../zip' is no name"), "{}", run.err);
}

mod suites {
    #[test]
    fn every_template_compiles_and_its_tests_hold() {
        if std::env::var_os("VOLARY_SUITES").is_none() {
            println!("SKIPPED: without VOLARY_SUITES");
            return;
        }
        super::hold(&super::TEMPLATES);
    }
}

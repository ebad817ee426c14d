//! A program in C does all of it: linked with the shared library and with the static one, and under valgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the newest library with this ending beside the test.
fn built(ending: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let mut found: Vec<PathBuf> = [deps, deps.parent().unwrap()]
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("libvolary_c") && name.ends_with(ending)
        })
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found.pop().expect("a library")
}

fn run(command: &mut Command) -> Output {
    let done = command.output().unwrap();
    let words = [&done.stdout[..], &done.stderr[..]].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    assert!(done.status.success(), "{command:?}:\n{words}");
    done
}

/// Puts the library where an installation has it, and returns its flags as pkg-config gives them.
fn installed(dir: &Path, is_static: bool) -> Vec<String> {
    let (lib, pc) = (dir.join("lib"), dir.join("lib/pkgconfig"));
    std::fs::create_dir_all(&pc).unwrap();
    std::fs::create_dir_all(dir.join("include")).unwrap();
    std::fs::copy(
        root().join("include/volary.h"),
        dir.join("include/volary.h"),
    )
    .unwrap();
    if is_static {
        std::os::unix::fs::symlink(built(".a"), lib.join("libvolary.a")).unwrap();
    } else {
        std::os::unix::fs::symlink(built(".so"), lib.join("libvolary.so.0")).unwrap();
        std::os::unix::fs::symlink("libvolary.so.0", lib.join("libvolary.so")).unwrap();
    }
    let text = std::fs::read_to_string(root().join("libvolary.pc.in")).unwrap();
    let text = text
        .replace("@PREFIX@", dir.to_str().unwrap())
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    std::fs::write(pc.join("libvolary.pc"), text).unwrap();
    let mut config = Command::new("pkg-config");
    config
        .env("PKG_CONFIG_PATH", &pc)
        .args(["--cflags", "--libs"]);
    if is_static {
        config.arg("--static");
    }
    let told = run(config.arg("libvolary")).stdout;
    String::from_utf8(told)
        .unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// Returns the program, and how to run it.
fn program(dir: &Path, is_static: bool) -> Command {
    let flags = installed(dir, is_static);
    let exe = dir.join("use");
    run(Command::new("cc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&exe)
        .arg(root().join("tests/use.c"))
        .args(&flags)
        .arg("-lpthread"));
    let mut command = Command::new(exe);
    command
        .current_dir(dir)
        .env("LD_LIBRARY_PATH", dir.join("lib"));
    command
}

#[test]
fn a_program_in_c_is_linked_with_the_shared_library() {
    let dir = TempDir::new().unwrap();
    let done = run(&mut program(dir.path(), false));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all well\n");
    let needed = run(Command::new("ldd")
        .env("LD_LIBRARY_PATH", dir.path().join("lib"))
        .arg(dir.path().join("use")));
    assert!(String::from_utf8_lossy(&needed.stdout).contains("libvolary.so.0"));
}

#[test]
fn a_program_in_c_is_linked_with_the_static_library() {
    let dir = TempDir::new().unwrap();
    let done = run(&mut program(dir.path(), true));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all well\n");
}

#[test]
fn a_program_in_c_has_no_mistakes_of_memory() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: no valgrind");
        return;
    }
    let dir = TempDir::new().unwrap();
    let plain = program(dir.path(), false);
    let mut command = Command::new("valgrind");
    command
        .args([
            "-q",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ])
        .arg(plain.get_program())
        .arg("briefly")
        .current_dir(dir.path())
        .env("LD_LIBRARY_PATH", dir.path().join("lib"));
    run(&mut command);
}

/// The header is one of C++ too.
#[test]
fn the_header_is_read_by_cpp() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("use.cpp");
    std::fs::write(
        &source,
        "#include <volary.h>\nint main() { return volary_close(0) == 0; }\n",
    )
    .unwrap();
    run(Command::new("c++")
        .args(["-Wall", "-Wextra", "-Werror", "-c", "-o"])
        .arg(dir.path().join("use.o"))
        .arg("-I")
        .arg(root().join("include"))
        .arg(source));
}

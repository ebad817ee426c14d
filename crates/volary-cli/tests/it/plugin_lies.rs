//! Plug-ins that are none, are of another version, lie, hang and crash, by the installed command: one
//! line, in bounded time, and nothing else is harmed.

use crate::plugins::compile;
use crate::sandbox::{Run, Sandbox};
use crate::serving::{Serving, client};
use std::time::{Duration, Instant};

/// What any of these may take, on a machine with other work.
const LIMIT: Duration = Duration::from_secs(30);

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::empty();
    let source = "crates/volary-plugin/tests/it/bad.c";
    compile(&sandbox, "bad", source, &["-pthread"]);
    sandbox
}

#[expect(clippy::disallowed_methods, reason = "nothing may take for ever")]
fn timed(sandbox: &Sandbox, line: &str) -> Run {
    let begun = Instant::now();
    let run = sandbox.run(line);
    assert!(begun.elapsed() < LIMIT, "{line}: {:?}", begun.elapsed());
    run
}

/// Runs a verb that is to fail, in one line.
#[track_caller]
fn refuses(sandbox: &Sandbox, line: &str, part: &str) {
    let run = timed(sandbox, line);
    assert!(
        (1..100).contains(&run.code),
        "{line}: {} {}",
        run.code,
        run.out
    );
    assert_eq!(run.err.lines().count(), 1, "{line}: {}", run.err);
    assert!(run.err.starts_with("volary: "), "{line}: {}", run.err);
    assert!(run.err.contains(part), "{line}: {}", run.err);
    let is_harmless = !run.err.contains(['\u{1b}', '\0']) && !run.err.contains("panicked");
    assert!(is_harmless, "{line}: {}", run.err);
}

#[test]
fn what_is_no_plug_in_or_does_not_fit_is_one_line() {
    let sandbox = sandbox();
    sandbox.write("libtext.so", b"no library\n");
    sandbox.write("libempty.so", b"");
    let whole = sandbox.read("libbad.so");
    sandbox.write("libcut.so", &whole[..whole.len() / 3]);
    sandbox.write("nothing.c", b"int nothing;\n");
    let nothing = sandbox.path("nothing.c");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&sandbox.path("libnothing.so"), &nothing])
        .status();
    assert!(built.unwrap().success());
    for (volume, part) in [
        ("./libmissing.so", "there is no such plug-in"),
        ("./libtext.so", "is no library"),
        ("./libempty.so", "is no library"),
        ("./libcut.so", "plug-in"),
        ("./tree/", "is no library"),
        ("./libnothing.so", "exports no FileSystemCreate"),
        ("missing", "there is no plug-in libmissing.so"),
        ("./libbad.so?version", "is of version 2"),
        ("./libbad.so?no-table", "no such file system in version 1"),
        ("./libbad.so?size-none", "0 bytes"),
        ("./libbad.so?size-huge", "4294967295 bytes"),
        ("./libbad.so?no-getattr", "no function getattr"),
        ("./libbad.so?create-crash", "signal 6"),
        ("./libbad.so?attach-crash", "signal 6"),
        ("./libbad.so?attach-never", "did not attach in time"),
        ("./libbad.so?attach-odd", "answered 5"),
        ("./libbad.so?attach-unknown", "answered -1000"),
        ("./libbad.so?attach-refused", "no such disk"),
        ("./libbad.so?caps-long", "longest name"),
        ("./libbad.so?caps-root", "number 0"),
    ] {
        for verb in ["ls", "info", "serve --nfs 127.0.0.1:0"] {
            let line = format!("{verb} -o plugin-timeout=0.5 plugin:{volume}");
            let line = match verb {
                // It takes no options; its plug-in has 30 seconds.
                "info" if volume.ends_with("never") => continue,
                "info" => format!("info plugin:{volume}"),
                _ => line,
            };
            refuses(&sandbox, &line, part);
        }
    }
}

#[test]
fn what_a_plug_in_says_that_cannot_be_is_one_line() {
    let sandbox = sandbox();
    for (verb, how, part) in [
        ("cat", "kind", "kind 99"),
        ("cat", "mode", "mode 100644"),
        ("cat", "zero-node", "number 0"),
        ("cat", "nanos", "nanoseconds"),
        ("cat", "size", "size"),
        ("cat", "error", "-999"),
        ("cat", "odd-answer", "answered 7"),
        ("cat", "read-more", "gave"),
        ("cat", "read-error", "no error"),
        ("cat", "read-unknown", "-29"),
        ("stat", "note", "name here"),
        ("stat", "long-note", "xxx"),
        ("ls", "name-slash", "no name"),
        ("ls", "name-nul", "no name"),
        ("ls", "name-null", "name of 4 bytes"),
        ("ls", "name-dots", "no name"),
        ("ls", "name-longer", "name of 4294967295 bytes"),
        ("ls", "cookie-zero", "cookie 0"),
        ("ls", "cookie-same", "cookie 1 again"),
        ("ls", "entry-kind", "kind 0"),
        ("ls", "entry-zero", "number 0"),
        ("ls", "more-nothing", "gives nothing"),
        ("ls", "answer-7", "answered 7"),
    ] {
        let place = match verb {
            "ls" => "",
            _ if how.ends_with("note") => ":/name",
            _ => ":/file",
        };
        refuses(
            &sandbox,
            &format!("{verb} plugin:./libbad.so?{how}{place}"),
            part,
        );
    }
}

#[test]
fn what_never_answers_or_ends_is_one_line_for_the_caller() {
    let sandbox = sandbox();
    for (how, part) in [
        ("never", "did not answer for 0.5 seconds"),
        ("spin", "did not answer for 0.5 seconds"),
        ("crash", "was ended by signal 11"),
        ("abort", "was ended by signal 6"),
        ("exit", "ended by itself with status 3"),
        ("wild", "signal"),
    ] {
        let line = format!("cat -o plugin-timeout=0.5 plugin:./libbad.so?{how}:/file");
        let run = timed(&sandbox, &line);
        assert!((1..100).contains(&run.code), "{line}: {}", run.code);
        assert!(
            run.err.lines().all(|line| line.starts_with("volary: ")),
            "{line}: {}",
            run.err
        );
        assert!(run.err.contains(part), "{line}: {}", run.err);
        assert!(!run.err.contains("panicked"), "{line}: {}", run.err);
    }
}

#[test]
fn beside_one_that_never_answers_another_volume_is_served() {
    let sandbox = sandbox();
    let source = "examples/plugins/hello.c";
    compile(&sandbox, "hello", source, &[]);
    let words = "-o plugin-timeout=0.5 plugin:./libbad.so?never plugin:./libhello.so";
    let serving = Serving::start(&sandbox, words);
    let (bad, good) = (serving.url("/bad/file"), serving.url("/hello/hello.txt"));
    for _ in 0..3 {
        let Some(run) = client(&sandbox, "nfs-cat", &[&bad]) else {
            return;
        };
        assert_ne!(run.code, 0, "{}", run.out);
        let run = client(&sandbox, "nfs-cat", &[&good]).unwrap();
        assert_eq!(run.code, 0, "{}", run.err);
    }
    let ended = serving.end("-TERM");
    assert!(
        ended.err.contains("did not answer for 0.5 seconds"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}

//! The `volary` command, as a library: [`run`] is all of it, with the formats, schemes and layers of a
//! [`Registry`]. A command with a format more is one line:
//!
//! ```no_run
//! # use volary_cli::volary;
//! fn main() -> std::process::ExitCode {
//!     let kv = |_: &[u8], _: &volary::Attach, now| volary::mem::Mem::attach(volary::mem::MemOptions::sized(1 << 20), now);
//!     volary_cli::run(volary::Registry::default().with_scheme("kv", kv))
//! }
//! ```
//!
//! | module | what |
//! |---|---|
//! | `verbs` | the commands |
//! | `copy` | `cp`: trees in both directions |
//! | `registry` | the formats, schemes and layers that there are |
//! | `volumes`, `row`, `kind`, `device` | opening volumes, finding places, reading directories |
//! | `stack` | layers over volumes |
//! | `sandbox` | what `serve` and `mount` give up |
//! | `plugins` | drivers loaded at run time |
//! | `out`, `log`, `closed`, `exit`, `tally`, `progress` | what is printed, how it ends |
//! | `heap` | in pages of which size memory is allocated |
//! | `modelled` | devices as `sim` has them |
//! | `clock`, `interrupt` | time and Ctrl-C |

#[cfg(doctest)]
#[doc = include_str!("../../../DRIVERS.md")]
struct Drivers;

mod alarm;
mod clock;
mod closed;
mod copy;
mod device;
mod exit;
mod heap;
mod interrupt;
mod kind;
mod log;
mod modelled;
mod out;
mod plugins;
mod progress;
mod registry;
mod row;
mod sandbox;
mod stack;
mod tally;
mod verbs;
mod volumes;
mod written;

use clap::Parser;
use clap::error::ErrorKind;
use exit::{Exit, Fail};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
pub use volary;
use volary::Registry;

/// The allocator of the `volary` command. A library forces none on the programs that it is in: a program that wants it makes it
/// its `#[global_allocator]`.
pub use mimalloc::MiMalloc as Allocator;

/// File systems in user space: any volume, any layer, any server.
///
/// A volume is an image (raw or qcow2) or a block device, IMAGE; a partition
/// of one, IMAGE#2; or memory, mem:64M;
/// or a directory of the host, host:DIR; or an NFS export, nfs://HOST/EXPORT.
/// A place in it is VOLUME:/path;
/// anything else is a path of the host. A backslash takes the meaning from a
/// colon or # in an image's name. `mem:` alone is a small volume with a few
/// files in it, to try things on.
#[derive(Parser, Debug)]
#[command(
    name = "volary",
    version,
    max_term_width = verbs::TERM_WIDTH,
    disable_help_subcommand = true
)]
#[command(after_help = "\
Examples:
  volary tree mem:
  volary mkfs --size 64M new.img && volary cp -r tree new.img:/
  volary ls -l disk.img:/docs")]
#[command(after_long_help = long_help())]
struct Cli {
    #[command(subcommand)]
    verb: verbs::Verb,
}

/// The examples, and what is read of the environment.
const LONG_HELP: &str = "\
Examples:
  volary tree mem:
  volary mkfs --size 64M new.img && volary cp -r tree new.img:/
  volary ls -l disk.img:/docs

Environment:
  VOLARY_PASSWORD    the password of serve --user
  VOLARY_CRYPT_PASSPHRASE  the passphrase of --layer crypt; without, that is in
                     VOLARY_PASSWORD, or is asked for
  SOURCE_DATE_EPOCH  the time, in seconds since 1970, for images that can be made again
  NO_COLOR           no colours; CLICOLOR_FORCE=1: colours, wherever it is printed";

/// Runs the command on this process's arguments, and returns its exit code. Formats, schemes and layers of `registry` are
/// everywhere: in what is recognised, opened, made, checked, served and mounted, and in the help.
///
/// For a program that is nothing else, at its beginning: it takes signals, gives up rights (`serve`, `mount`), and may start
/// this program again for what it gave up. A second call has the registry of the first.
pub fn run(registry: Registry) -> ExitCode {
    registry::begin(registry);
    heap::use_huge_pages(false);
    leave_out_caught_panics();
    let words: Vec<OsString> = std::env::args_os().collect();
    if sandbox::attendant::run(&words) {
        return ExitCode::SUCCESS;
    }
    let words = with_address(with_two_dashes(of_help(words)));
    let whole = || Cli::try_parse_from(&words).map(|cli| cli.verb);
    let exit = match verbs::Verb::parse_alone(&words).unwrap_or_else(whole) {
        Ok(verb) => match verb.run() {
            Ok(exit) => exit,
            Err(fail) => {
                fail.report();
                fail.exit
            }
        },
        Err(e) => refused(&e),
    };
    log::end();
    ExitCode::from(exit.code())
}

/// Returns the examples, the environment, and the schemes of the registry.
fn long_help() -> String {
    let schemes: Vec<_> = registry::registry()
        .schemes()
        .map(volary::Scheme::spec)
        .collect();
    match schemes.is_empty() {
        true => LONG_HELP.into(),
        false => format!(
            "{LONG_HELP}\n\nVolumes beside these:\n{}",
            verbs::info::schemes_text(&schemes)
        ),
    }
}

/// Says nothing of panics that become an error, which is told in one line.
fn leave_out_caught_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !volary::block::catches_panic() {
            usual(panic);
        }
    }));
}

/// `volary help VERB` is `volary VERB --help`.
fn of_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|verb| verb == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// `find` takes its options with one dash as well, as find(1) has them.
fn with_two_dashes(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|verb| verb == "find") {
        for word in words.iter_mut().skip(2) {
            if verbs::find::ONE_DASH.iter().any(|option| word == option) {
                let mut long = OsString::from("-");
                long.push(&*word);
                *word = long;
            }
        }
    }
    words
}

/// `serve --smb` has an address or not: one that follows as a word of its own belongs to it.
fn with_address(words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|verb| verb != "serve") {
        return words;
    }
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        match joined.last_mut() {
            Some(last) if last == "--smb" && verbs::serve::is_address(&word) => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// Help as it is; a command line that makes no sense in one line.
fn refused(e: &clap::Error) -> Exit {
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return match print(e) {
                Ok(()) => Exit::Done,
                Err(fail) => {
                    fail.report();
                    fail.exit
                }
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // On standard error: where that is closed there is nobody to tell.
            let _ = e.print();
            return Exit::Usage;
        }
        _ => {}
    }
    let verb = std::env::args_os().nth(1);
    let verb = verb.map(|v| v.to_string_lossy().into_owned());
    let verb = verb.filter(|v| !v.starts_with('-')).unwrap_or_default();
    let space = if verb.is_empty() { "" } else { " " };
    let hint = match (e.kind(), verb.as_str()) {
        (ErrorKind::InvalidSubcommand, "umount" | "unmount") => "fusermount3 -u DIR".into(),
        (ErrorKind::InvalidSubcommand, _) => "volary --help".into(),
        _ => format!("volary{space}{verb} --help"),
    };
    let line = match hint.as_str() {
        "fusermount3 -u DIR" => format!("no command '{verb}'; unmount with: {hint}"),
        hint => format!("{}; see {hint}", one_line(&e.to_string())),
    };
    Fail::usage(line).report();
    if verb == "fsck" {
        Exit::CheckUsage
    } else {
        Exit::Usage
    }
}

/// Prints help, in colours where they are wanted.
///
/// # Errors
/// Of standard output.
fn print(e: &clap::Error) -> exit::Done {
    let text = e.render();
    let text = match out::is_coloured() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    Ok(out::Raw.write_all(text.as_bytes())?)
}

/// Returns what the parser says, without its usage and what is no help: a hint follows a semicolon.
fn one_line(text: &str) -> String {
    let mut whole = String::new();
    let lines = text.lines().map(str::trim);
    let is_more = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more");
    for line in lines.take_while(is_more).filter(|line| !line.is_empty()) {
        match line.strip_prefix("tip: ") {
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => whole.extend(["; ", tip]),
            None if whole.is_empty() => whole.push_str(line),
            None => whole.extend([" ", line]),
        }
    }
    let no_number = [
        "invalid digit found in string",
        "cannot parse integer from empty string",
    ];
    for words in no_number {
        whole = whole.replace(words, "it is no number");
    }
    whole = whole.replace("number too large to fit in target type", "it is too large");
    let line = whole.strip_prefix("error: ").unwrap_or(&whole);
    volary::escape(line.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_address_after_smb_is_no_volume() {
        for (given, taken) in [
            (
                "serve --smb 127.0.0.1:0 a.img",
                "serve --smb=127.0.0.1:0 a.img",
            ),
            ("serve --smb 4450 a.img", "serve --smb=4450 a.img"),
            ("serve --smb=1 2 a.img", "serve --smb=1 2 a.img"),
            ("serve --smb a.img", "serve --smb a.img"),
            ("serve a.img --smb", "serve a.img --smb"),
            ("serve --smb src", "serve --smb src"),
            ("mount --smb 4450", "mount --smb 4450"),
        ] {
            let given = format!("volary {given}");
            let words = given.split(' ').map(OsString::from).collect();
            let taken: Vec<_> = ["volary"].into_iter().chain(taken.split(' ')).collect();
            assert_eq!(with_address(words), taken);
        }
    }

    #[test]
    fn every_command_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            for part in verb.get_subcommands().filter(|part| !part.is_hide_set()) {
                let help = part.get_after_help().map(ToString::to_string);
                let example = format!("volary {} {}", verb.get_name(), part.get_name());
                assert!(help.unwrap_or_default().contains(&example), "{example}");
            }
            let help = verb
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let example = format!("volary {}", verb.get_name());
            assert!(help.contains(&example), "{} has none", verb.get_name());
        }
    }

    #[test]
    fn a_verb_alone_has_the_same_help() {
        let mut whole = Cli::command();
        whole.build();
        for verb in whole.get_subcommands_mut() {
            let mut alone = verbs::Verb::alone(verb.get_name()).unwrap();
            alone.build();
            let name = verb.get_name().to_string();
            assert_eq!(
                alone.render_long_help().to_string(),
                verb.render_long_help().to_string(),
                "{name}"
            );
            assert_eq!(
                alone.render_help().to_string(),
                verb.render_help().to_string(),
                "{name}"
            );
        }
    }

    #[test]
    fn what_the_parser_says_is_one_line_with_its_useful_hints() {
        for (text, line) in [
            (
                "error: unexpected argument '-o' found\n\n  tip: to pass '-o' as a value, use '-- -o'\n\nUsage: x",
                "unexpected argument '-o' found",
            ),
            (
                "error: unrecognized subcommand 'lss'\n\n  tip: a similar subcommand exists: 'ls'\n",
                "unrecognized subcommand 'lss'; a similar subcommand exists: 'ls'",
            ),
            (
                "error: invalid value 'x' for '--n': invalid digit found in string\n\nFor more",
                "invalid value 'x' for '--n': it is no number",
            ),
        ] {
            assert_eq!(one_line(text), line);
        }
    }

    #[test]
    fn find_takes_its_options_with_one_dash() {
        let words = ["volary", "find", "x", "-name", "-n", "-type"]
            .map(OsString::from)
            .to_vec();
        let words = with_two_dashes(words);
        assert_eq!(words, ["volary", "find", "x", "--name", "-n", "--type"]);
    }
}

//! The `volary` command.
//!
//! | module | what |
//! |---|---|
//! | `verbs` | the commands |
//! | `copy` | `cp`: trees in both directions |
//! | `volumes`, `row` | opening volumes, finding places, reading directories |
//! | `stack` | layers over volumes |
//! | `out`, `exit`, `progress` | what is printed, how it ends |
//! | `clock`, `interrupt` | time and Ctrl-C |

mod alarm;
mod clock;
mod copy;
mod exit;
mod interrupt;
mod out;
mod progress;
mod row;
mod stack;
mod verbs;
mod volumes;

use clap::Parser;
use clap::error::ErrorKind;
use exit::{Exit, Fail};
use std::ffi::OsString;
use std::process::ExitCode;

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
struct Cli {
    #[command(subcommand)]
    verb: verbs::Verb,
}

fn main() -> ExitCode {
    let words = with_address(with_two_dashes(std::env::args_os().collect()));
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
    ExitCode::from(exit.code())
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
            // A closed pipe is how `| head` ends.
            let _ = e.print();
            return Exit::Done;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            return Exit::Usage;
        }
        _ => {}
    }
    let text = e.to_string();
    let lines = text.lines().map(str::trim);
    let words: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    let line = words.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    let verb = std::env::args()
        .nth(1)
        .filter(|v| !v.starts_with('-'))
        .unwrap_or_default();
    let is_fsck = verb == "fsck";
    let space = if verb.is_empty() { "" } else { " " };
    let hint = match e.kind() {
        ErrorKind::InvalidSubcommand => "volary --help".to_string(),
        _ => format!("volary{space}{verb} --help"),
    };
    Fail::usage(format!("{line}; see {hint}")).report();
    if is_fsck {
        Exit::CheckUsage
    } else {
        Exit::Usage
    }
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
    fn find_takes_its_options_with_one_dash() {
        let words = ["volary", "find", "x", "-name", "-n", "-type"]
            .map(OsString::from)
            .to_vec();
        let words = with_two_dashes(words);
        assert_eq!(words, ["volary", "find", "x", "--name", "-n", "--type"]);
    }
}

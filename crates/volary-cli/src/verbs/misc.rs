//! `volary completions`, `volary man`: about the program itself.

use crate::exit::{Done, Exit, Fail};
use crate::registry::registry;
use crate::{Cli, out};
use clap::CommandFactory;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints a script that completes this program's words in a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary completions bash > volary.bash")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Completions {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "volary", &mut text);
        out::Raw.write_all(&text)?;
        Ok(Exit::Done)
    }
}

/// Writes the man pages into a directory.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary man man && man -l man/volary-cp.1")]
pub(crate) struct Man {
    /// The directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        std::fs::create_dir_all(&self.dir).map_err(|e| Fail::host(self.dir.display(), e))?;
        let mut command = Cli::command();
        command.build();
        page(&self.dir, "volary", command.clone())?;
        for verb in command.get_subcommands() {
            let name = format!("volary-{}", verb.get_name());
            page(&self.dir, &name, verb.clone())?;
            for part in verb.get_subcommands().filter(|part| !part.is_hide_set()) {
                page(
                    &self.dir,
                    &format!("{name}-{}", part.get_name()),
                    part.clone(),
                )?;
            }
        }
        Ok(Exit::Done)
    }
}

/// One page: what clap knows, and the exit codes.
fn page(dir: &Path, name: &str, command: clap::Command) -> Done {
    let path = dir.join(format!("{name}.1"));
    let mut text = Vec::new();
    let man = clap_mangen::Man::new(command);
    man.render(&mut text)
        .map_err(|e| Fail::host(path.display(), e))?;
    if name == "volary" {
        text.extend_from_slice(layers_section().as_bytes());
    }
    text.extend_from_slice(exit_section(name).as_bytes());
    std::fs::write(&path, text).map_err(|e| Fail::host(path.display(), e))
}

/// Returns the section of layers: what `--layer` takes.
fn layers_section() -> String {
    let mut text = String::from(
        ".SH LAYERS\nCommands that open volumes put layers over each with \\fB\\-\\-layer\\fR, \
         the first lowest.\n",
    );
    for layer in registry().layers() {
        let value = match layer.value {
            "" => String::new(),
            value => format!("=\\fI{value}\\fR"),
        };
        text.push_str(&format!(
            ".TP\n\\fB{}\\fR{value}\n{}\n",
            layer.name, layer.help
        ));
    }
    text
}

/// Returns the section of exit codes of a page.
fn exit_section(name: &str) -> String {
    let codes = if name == "volary-fsck" {
        Exit::FSCK
    } else {
        Exit::COMMON
    };
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    for exit in codes {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", exit.code(), exit.words()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_each_command_lists_every_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        Man {
            dir: dir.path().into(),
        }
        .run()
        .unwrap();
        let mut pages = 0;
        for page in std::fs::read_dir(dir.path()).unwrap() {
            let path = page.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let is_fsck = path.ends_with("volary-fsck.1");
            for exit in if is_fsck { Exit::FSCK } else { Exit::COMMON } {
                assert!(text.contains(&format!("\\fB{}\\fR\n{}", exit.code(), exit.words())));
            }
            pages += 1;
        }
        let command = Cli::command();
        let parts = command
            .get_subcommands()
            .flat_map(|verb| verb.get_subcommands());
        let parts = parts.filter(|part| !part.is_hide_set()).count();
        assert_eq!(pages, 1 + command.get_subcommands().count() + parts);
    }
}

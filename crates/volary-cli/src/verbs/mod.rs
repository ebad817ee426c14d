//! The commands, one module for those that belong together.

pub(crate) mod attrs;
mod bench;
mod bulk;
mod cat;
pub(crate) mod change;
mod conform;
pub(crate) mod find;
mod fsck;
pub(crate) mod info;
mod ls;
mod map;
mod misc;
pub(crate) mod mkfs;
mod modes;
mod mount;
pub(crate) mod moving;
mod new;
mod quota;
pub(crate) mod serve;
mod sim;
mod space;
mod stat;
mod torture;
mod tree;
mod tune;
mod versions;

use crate::copy::Cp;
use crate::exit::{Done, Exit};
use clap::{Args, Command, Error};
use std::ffi::OsString;

/// Defines [`Verb`] and its `run` from one list.
macro_rules! verbs {
    ($( $(#[$meta:meta])* $name:ident($args:ty) ),* $(,)?) => {
        /// What the program can do.
        #[derive(clap::Subcommand, Debug)]
        pub(crate) enum Verb {
            $( $(#[$meta])* $name(Box<$args>) ),*
        }

        impl Verb {
            /// Does it.
            pub(crate) fn run(&self) -> Done<Exit> {
                match self { $( Self::$name(args) => args.run() ),* }
            }

            /// Parses a command line that begins with a verb, without setting
            /// up the others: that takes longer than many a verb. `None` if it
            /// begins with anything else.
            pub(crate) fn parse_alone(words: &[OsString]) -> Option<Result<Self, Error>> {
                let verb = words.get(1)?.to_str()?;
                $( if is_verb(verb, stringify!($name)) {
                    return Some(parse::<$args>(verb, words).map(|args| Self::$name(Box::new(args))));
                } )*
                None
            }

            /// Returns the command line of a verb alone.
            #[cfg(test)]
            pub(crate) fn alone(verb: &str) -> Option<Command> {
                $( if is_verb(verb, stringify!($name)) {
                    return Some(command::<$args>(verb));
                } )*
                None
            }
        }
    };
}

/// Returns whether `word` is the verb whose variant this is.
fn is_verb(word: &str, variant: &str) -> bool {
    word.bytes()
        .eq(variant.bytes().map(|b| b.to_ascii_lowercase()))
}

/// Returns what clap makes of the verb as a part of the whole.
fn command<A: Args>(verb: &str) -> Command {
    let command = Command::new("volary")
        .max_term_width(TERM_WIDTH)
        .disable_help_subcommand(true);
    A::augment_args(command).bin_name(format!("volary {verb}"))
}

fn parse<A: Args>(verb: &str, words: &[OsString]) -> Result<A, Error> {
    let mut command = command::<A>(verb);
    let words = words.iter().skip(1);
    let mut matches = command.try_get_matches_from_mut(words)?;
    A::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut command))
}

/// Columns of help, at most.
pub(crate) const TERM_WIDTH: usize = 100;

verbs! {
    Mkfs(mkfs::Mkfs),
    Info(info::Info),
    Dump(info::Dump),
    Ls(ls::Ls),
    Tree(tree::Tree),
    Find(find::Find),
    Cat(cat::Cat),
    Stat(stat::Stat),
    Cp(Cp),
    Mv(moving::Mv),
    Rm(change::Rm),
    Mkdir(change::Mkdir),
    Rmdir(change::Rmdir),
    Ln(change::Ln),
    Readlink(stat::Readlink),
    Chmod(attrs::Chmod),
    Chown(attrs::Chown),
    Touch(attrs::Touch),
    Truncate(attrs::Truncate),
    Attrib(attrs::Attrib),
    Versions(versions::Versions),
    Du(space::Du),
    Df(space::Df),
    #[command(visible_alias = "hash")]
    Sha256sum(cat::Sha256sum),
    Bulk(bulk::Bulk),
    Fsck(fsck::Fsck),
    Tune(tune::Tune),
    Label(tune::Label),
    Badsect(tune::Badsect),
    Quota(quota::Quota),
    Map(map::Map),
    Mount(mount::Mount),
    Serve(serve::Serve),
    Conform(conform::Conform),
    Torture(torture::Torture),
    Sim(sim::Sim),
    Bench(bench::Bench),
    Formats(info::Formats),
    Layers(info::Layers),
    New(new::New),
    Completions(misc::Completions),
    Man(misc::Man),
}

//! The commands, one module for those that belong together.

pub(crate) mod attrs;
mod cat;
pub(crate) mod change;
pub(crate) mod find;
mod fsck;
mod info;
mod ls;
mod map;
mod misc;
mod mkfs;
mod modes;
mod mount;
pub(crate) mod moving;
mod space;
mod stat;
mod tree;
mod tune;

use crate::copy::Cp;
use crate::exit::{Done, Exit};

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
        }
    };
}

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
    Du(space::Du),
    Df(space::Df),
    #[command(visible_alias = "hash")]
    Sha256sum(cat::Sha256sum),
    Fsck(fsck::Fsck),
    Tune(tune::Tune),
    Label(tune::Label),
    Badsect(tune::Badsect),
    Map(map::Map),
    Mount(mount::Mount),
    Bench(misc::Bench),
    Formats(info::Formats),
    Completions(misc::Completions),
    Man(misc::Man),
}

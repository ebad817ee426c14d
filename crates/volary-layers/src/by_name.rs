//! Layers by name, as in `--layer NAME[=ARG]`.

use crate::{
    Audit, CaseFold, Count, Crypt, CryptCost, DirCache, Fault, IdMap, Munge, Outside, Quota,
    ReadOnly, Squash, Subtree, Symlinks, Throttle, Trace,
};
use std::sync::Arc;
use volary_core::{Error, Fs, Kind, OptionSpec, Result};

/// The layers that [`layer_by_name`] knows.
pub const LAYERS: &[OptionSpec] = &[
    OptionSpec {
        name: "readonly",
        value: "",
        help: "refuse all changes",
    },
    OptionSpec {
        name: "count",
        value: "",
        help: "count the calls that reach the volume, and print a table at the end",
    },
    OptionSpec {
        name: "trace",
        value: "",
        help: "print a line for each call that reaches the volume",
    },
    OptionSpec {
        name: "fault",
        value: "RULE,…",
        help: "make calls fail: OPERATION[@N|@N+|%PERCENT][:KIND], seed=N; \
               e.g. write@3:NoSpace, read%0.1",
    },
    OptionSpec {
        name: "subtree",
        value: "PATH",
        help: "show the directory PATH as if it were the whole volume",
    },
    OptionSpec {
        name: "idmap",
        value: "RULE,…",
        help: "show users and groups as others: u:ABOVE:BELOW[:COUNT], \
               g:ABOVE:BELOW[:COUNT], squash:UID:GID",
    },
    OptionSpec {
        name: "squash",
        value: "[root:]UID:GID",
        help: "make all callers, or root alone, this user and group",
    },
    OptionSpec {
        name: "audit",
        value: "FILE[,reads,rate=N,size=SIZE]",
        help: "add a line to FILE for each change; with reads for each read as well, at most \
               rate=1000 a second and size=64M in all",
    },
    OptionSpec {
        name: "throttle",
        value: "ops=N,bytes=SIZE",
        help: "let through so many operations and bytes a second",
    },
    OptionSpec {
        name: "quota",
        value: "bytes=SIZE,nodes=N[,each]",
        help: "bound what the volume, or each owner, may take; counts what is there first",
    },
    OptionSpec {
        name: "casefold",
        value: "",
        help: "find names in any case of letters, on a volume that tells cases apart",
    },
    OptionSpec {
        name: "munge",
        value: "[above|below]",
        help: "write what DOS and Windows cannot hold in names as %XX: above for clients \
               (the default), below to keep any name on a volume that refuses some",
    },
    OptionSpec {
        name: "symlinks",
        value: "",
        help: "show what symlinks lead to in their place, within the volume",
    },
    OptionSpec {
        name: "dircache",
        value: "[memory=SIZE,age=SECONDS]",
        help: "remember entries and attributes (default memory=8M)",
    },
    OptionSpec {
        name: "crypt",
        value: "[passphrase-file=FILE]",
        help: "keep names, symlinks and content encrypted, under the passphrase in FILE, which \
               nobody else may read, or in VOLARY_CRYPT_PASSPHRASE, or that is asked for; makes \
               an empty volume an encrypted one",
    },
];

/// An optional prefix of the file's name in the argument of `crypt`.
const PASSPHRASE_FILE: &str = "passphrase-file=";

/// A file system with a layer on it.
pub struct Stacked {
    /// The file system as seen through the layer.
    pub fs: Fs,
    /// Returns the layer's report, lines of text for the end of the program.
    pub report: Option<Box<dyn Fn() -> String + Send + Sync>>,
}

/// Puts the layer that `spec` names, as `NAME` or `NAME=ARG`, over `below`. The layer takes host
/// services from `outside`.
///
/// # Errors
/// `Invalid` for an unknown layer, which names the known ones. `Invalid` for an argument that is
/// missing, superfluous or wrong, which says what is expected. `Invalid` also for a layer that
/// makes no sense over `below`, which says why. `NotFound` and `NotDir` for `subtree`. The volume's
/// errors for layers that read it first.
pub fn layer_by_name(below: Fs, spec: &str, outside: &Arc<dyn Outside>) -> Result<Stacked> {
    let (name, arg) = match spec.split_once('=') {
        Some((name, arg)) => (name, Some(arg)),
        None => (spec, None),
    };
    let known = LAYERS.iter().find(|layer| layer.name == name);
    let Some(layer) = known else {
        let names: Vec<_> = LAYERS.iter().map(|layer| layer.name).collect();
        return refuse(format!(
            "unknown layer '{name}'; known are: {}",
            names.join(", ")
        ));
    };
    let arg = argument_of(layer, arg)?;
    if name == "count" {
        let count = Arc::new(Count::new(below));
        return Ok(Stacked {
            fs: count.clone(),
            report: Some(Box::new(move || count.to_string())),
        });
    }
    let fs = make(below, name, arg, outside)?;
    Ok(Stacked { fs, report: None })
}

/// Returns the argument of a layer as given, or an empty one if it is optional and left out.
///
/// # Errors
/// `Invalid` for an argument that is missing or superfluous, which says what is expected.
pub fn argument_of<'a>(layer: &OptionSpec, given: Option<&'a str>) -> Result<&'a str> {
    let name = layer.name;
    match (given, layer.value) {
        (Some(_), "") => refuse(format!("layer {name} takes no argument")),
        (None | Some(""), value) if !value.is_empty() && !is_optional(value) => {
            refuse(format!("layer {name} needs an argument: {name}={value}"))
        }
        (given, _) => Ok(given.unwrap_or("")),
    }
}

/// Returns whether the argument of a layer is optional: `[ARG]`.
fn is_optional(value: &str) -> bool {
    value.starts_with('[') && value.ends_with(']')
}

fn make(below: Fs, name: &str, arg: &str, outside: &Arc<dyn Outside>) -> Result<Fs> {
    Ok(match name {
        "readonly" => Arc::new(ReadOnly::new(below)),
        "trace" => {
            let outside = outside.clone();
            Arc::new(Trace::new(below, Arc::new(move |line| outside.trace(line))))
        }
        "fault" => Arc::new(Fault::parse(below, arg)?),
        "subtree" => Arc::new(Subtree::new(below, arg.as_bytes())?),
        "squash" => Arc::new(Squash::parse(below, arg)?),
        "audit" => Arc::new(Audit::parse(below, &**outside, arg)?),
        "throttle" => Arc::new(Throttle::parse(below, outside.pace()?, arg)?),
        "quota" => Arc::new(Quota::parse(below, arg)?),
        "casefold" => Arc::new(CaseFold::new(below)?),
        "munge" => Arc::new(Munge::parse(below, arg)?),
        "symlinks" => Arc::new(Symlinks::new(below)?),
        "dircache" => Arc::new(DirCache::parse(below, arg)?),
        "crypt" => {
            let file = arg.strip_prefix(PASSPHRASE_FILE).unwrap_or(arg);
            let is_new = !Crypt::is_made(&below)?;
            let file = Some(file).filter(|file| !file.is_empty());
            let passphrase = outside.passphrase(file, is_new)?;
            let passphrase = zeroize::Zeroizing::new(passphrase);
            let cost = CryptCost::default();
            Arc::new(Crypt::new(below, outside.clone(), &passphrase, cost)?)
        }
        _ => Arc::new(IdMap::parse(below, arg)?),
    })
}

fn refuse<T>(words: String) -> Result<T> {
    Err(Error::note(Kind::Invalid, words))
}

//! Layers by name, as `--layer NAME[=ARG]` gives them.

use crate::{Count, Fault, IdMap, ReadOnly, Subtree, Trace, TraceSink};
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
];

/// A file system with a layer on it.
pub struct Stacked {
    /// The file system as it is through the layer.
    pub fs: Fs,
    /// What the layer has to say when all is done: lines of text.
    pub report: Option<Box<dyn Fn() -> String + Send + Sync>>,
}

/// Puts the layer that `spec` names, as `NAME` or `NAME=ARG`, over `below`.
/// `trace` takes the lines of the trace layer.
///
/// # Errors
/// `Invalid` for an unknown layer, naming those that there are; for an argument
/// that is missing, superfluous or wrong, saying what is expected; for
/// `subtree`, also `NotFound` and `NotDir`.
pub fn layer_by_name(below: Fs, spec: &str, trace: &TraceSink) -> Result<Stacked> {
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
    let arg = match (arg, layer.value) {
        (None, "") => "",
        (Some(arg), value) if !value.is_empty() && !arg.is_empty() => arg,
        (Some(_), "") => return refuse(format!("layer {name} takes no argument")),
        (_, value) => {
            return refuse(format!("layer {name} needs an argument: {name}={value}"));
        }
    };
    if name == "count" {
        let count = Arc::new(Count::new(below));
        return Ok(Stacked {
            fs: count.clone(),
            report: Some(Box::new(move || count.to_string())),
        });
    }
    let fs: Fs = match name {
        "readonly" => Arc::new(ReadOnly::new(below)),
        "trace" => Arc::new(Trace::new(below, trace.clone())),
        "fault" => Arc::new(Fault::parse(below, arg)?),
        "subtree" => Arc::new(Subtree::new(below, arg.as_bytes())?),
        _ => Arc::new(IdMap::parse(below, arg)?),
    };
    Ok(Stacked { fs, report: None })
}

fn refuse(words: String) -> Result<Stacked> {
    Err(Error::note(Kind::Invalid, words))
}

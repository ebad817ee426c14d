//! `--plugin`: drivers that are loaded at run time.

use crate::sandbox::{RunAs, attendant::plugin_helper};
use std::path::PathBuf;
use volary::plugin::{Plugins, install};

/// Where plug-ins are that are named without a path, and that no `--plugin` names.
const DIRS: [&str; 2] = ["/usr/local/lib/volary", "/usr/lib/volary"];

/// Options of the commands that open volumes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PluginArgs {
    /// Knows a driver in this library: libNAME.so is plugin:NAME from here on. Others are looked for in
    /// /usr/local/lib/volary and /usr/lib/volary, or named by their path
    #[arg(long = "plugin", value_name = "LIBRARY")]
    plugins: Vec<PathBuf>,
    /// Runs plug-ins in this process, not in one of their own: faster, but what they do wrong, this
    /// process does
    #[arg(long)]
    plugin_in_process: bool,
}

impl PluginArgs {
    /// Returns whether none was named.
    pub(crate) fn is_empty(&self) -> bool {
        self.plugins.is_empty() && !self.plugin_in_process
    }

    /// Has all volumes of this process know them, and run as the user that this process becomes.
    pub(crate) fn install(&self, run_as: Option<&RunAs>) {
        let mut plugins = Plugins::new()
            .with_helper(plugin_helper(run_as))
            .in_process(self.plugin_in_process);
        for path in &self.plugins {
            plugins = plugins.with_library(path);
        }
        for dir in DIRS {
            plugins = plugins.with_dir(dir);
        }
        install(plugins);
    }
}

//! Options of the commands that work on the device of a volume.

use crate::kind::KindArg;
use crate::plugins::PluginArgs;
use crate::volumes::{AttachArgs, OptionArgs};

/// How to tell what is on a device; and plug-ins, so that a plug-in's volume, which is on none, is refused by name.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct DeviceArgs {
    #[command(flatten)]
    pub(crate) kind: KindArg,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

impl From<DeviceArgs> for AttachArgs {
    fn from(device: DeviceArgs) -> Self {
        Self {
            options: OptionArgs {
                plugins: device.plugins,
                ..OptionArgs::default()
            },
            kind: device.kind,
        }
    }
}

//! The layer `driver-name`: shows the names of a volume in capital letters. Adapt what it
//! overrides: all else is forwarded.

use std::sync::Arc;
use volary::{Caps, Ctx, Fs, Kind, Layer, LayerKind, Name, NameUse, NodeId, Result};

/// Returns the layer: `Registry::default().with(layer())`.
pub fn layer() -> LayerKind {
    let make = |below: Fs, _: &str, _: &_| -> Result<Fs> { Ok(Arc::new(DriverName { below })) };
    LayerKind::new("driver-name", make).help("", "show names in capital letters")
}

struct DriverName {
    below: Fs,
}

impl Layer for DriverName {
    /// Names are others here than below: both methods are asked in every operation, and in
    /// listings.
    const MAPS_NAMES: bool = true;

    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        self.below.caps().without(Caps::ANY_NAME)
    }

    fn name_down(
        &self,
        _: &Ctx<'_>,
        _: NodeId,
        name: Name<'_>,
        of: NameUse,
    ) -> Result<Option<Vec<u8>>> {
        let name = name.as_bytes();
        match name.iter().any(u8::is_ascii_lowercase) {
            // Nothing is shown so.
            true => Err(of.refusal().into()),
            false if name.len() > self.below.caps().name_max.into() => {
                Err(Kind::NameTooLong.into())
            }
            false => Ok(Some(name.to_ascii_lowercase())),
        }
    }

    fn name_up(&self, name: &[u8]) -> Option<Vec<u8>> {
        // What is not all in small letters below could not be asked for.
        let is_small = !name.iter().any(u8::is_ascii_uppercase);
        is_small.then(|| name.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary::layers::{Nothing, Outside};
    use volary::mem::{Mem, MemOptions};
    use volary::{Cred, Follow, Registry, SetAttr, Time, Volume, VolumeOptions};

    #[test]
    fn names_are_in_capital_letters() {
        let below = Mem::attach(MemOptions::sized(1 << 20), Time::EPOCH).unwrap();
        let outside: Arc<dyn Outside> = Arc::new(Nothing);
        let registry = Registry::default().with(layer());
        let over = registry
            .layer(below.clone(), "driver-name", &outside)
            .unwrap()
            .fs;
        let session =
            |fs| Volume::new(fs, VolumeOptions::new("test", || Time::EPOCH)).session(Cred::root());
        let (above, below) = (session(over), session(below));
        let (dir, name) = above.walk_parent(b"/DIR").unwrap();
        above.mkdir(dir, &name, &SetAttr::mode(0o755)).unwrap();
        assert!(
            below.walk(b"/dir", Follow::Yes).is_ok() && above.walk(b"/DIR", Follow::Yes).is_ok()
        );
        assert_eq!(
            above.walk(b"/dir", Follow::Yes).unwrap_err(),
            Kind::NotFound
        );
    }
}

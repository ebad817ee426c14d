//! Layers of a program's own.
#![cfg(feature = "layers")]

use super::{Needs, Registry, check_name, taken};
use crate::layers::{LAYERS, Outside, Stacked, argument_of, layer_by_name};
use std::sync::Arc;
use volary_core::{Error, Fs, Kind, OptionSpec, Result};

type Make = dyn Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync;

/// A layer of a program's own, `--layer NAME[=ARGUMENT]`.
pub struct LayerKind {
    spec: OptionSpec,
    make: Box<Make>,
    needs: Box<dyn Fn(&str) -> Needs + Send + Sync>,
}

impl LayerKind {
    /// Returns a layer that `make` puts over a volume. It is given the argument, empty without one, and what it may have of
    /// the world outside.
    pub fn new(
        name: &'static str,
        make: impl Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            spec: OptionSpec {
                name,
                value: "",
                help: "",
            },
            make: Box::new(make),
            needs: Box::new(|_| Needs::default()),
        }
    }

    /// With words for people: the argument, in brackets if it can be left out, none for a layer without; and what it does.
    #[must_use]
    pub fn help(mut self, argument: &'static str, help: &'static str) -> Self {
        (self.spec.value, self.spec.help) = (argument, help);
        self
    }

    /// With what it needs of this host for an argument.
    #[must_use]
    pub fn needs(mut self, needs: impl Fn(&str) -> Needs + Send + Sync + 'static) -> Self {
        self.needs = Box::new(needs);
        self
    }
}

impl std::fmt::Debug for LayerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LayerKind").field(&self.spec.name).finish()
    }
}

impl Registry {
    /// Adds a layer.
    ///
    /// # Errors
    /// `Invalid` for what is no name, and for the name of a layer that is there.
    pub fn add_layer(&mut self, layer: LayerKind) -> Result<()> {
        let name = layer.spec.name;
        check_name("the layer", name)?;
        if self.layers().any(|other| other.name == name) {
            return Err(taken("the layer", name));
        }
        self.layers.push(Arc::new(layer));
        Ok(())
    }

    /// Adds a layer without an argument, or with one that may be left out; for one that says more of itself: [`with`](Self::with).
    ///
    /// # Panics
    /// Where [`add_layer`](Self::add_layer) refuses.
    #[must_use]
    pub fn with_layer(
        self,
        name: &'static str,
        make: impl Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        self.with(LayerKind::new(name, make).help("[ARGUMENT]", ""))
    }

    /// Returns the layers: those that were built in, and those that were added.
    pub fn layers(&self) -> impl Iterator<Item = &OptionSpec> {
        LAYERS
            .iter()
            .chain(self.layers.iter().map(|layer| &layer.spec))
    }

    /// Puts the layer that `spec` names, as `NAME` or `NAME=ARG`, over `below`.
    ///
    /// # Errors
    /// As [`layer_by_name`]; of the layer's own making.
    pub fn layer(&self, below: Fs, spec: &str, outside: &Arc<dyn Outside>) -> Result<Stacked> {
        let (name, given) = split(spec);
        let own = self.layers.iter().find(|layer| layer.spec.name == name);
        let Some(own) = own else {
            if LAYERS.iter().any(|layer| layer.name == name) {
                return layer_by_name(below, spec, outside);
            }
            let names: Vec<_> = self.layers().map(|layer| layer.name).collect();
            let name = volary_core::escape(name.as_bytes());
            let words = format!("unknown layer '{name}'; known are: {}", names.join(", "));
            return Err(Error::note(Kind::Invalid, words));
        };
        let argument = argument_of(&own.spec, given)?;
        let fs = (own.make)(below, argument, outside)?;
        Ok(Stacked { fs, report: None })
    }

    /// Returns what a layer that was added needs of this host; nothing of those that were built in.
    pub fn layer_needs(&self, spec: &str) -> Needs {
        let (name, given) = split(spec);
        let own = self.layers.iter().find(|layer| layer.spec.name == name);
        own.map(|own| (own.needs)(given.unwrap_or_default()))
            .unwrap_or_default()
    }
}

fn split(spec: &str) -> (&str, Option<&str>) {
    match spec.split_once('=') {
        Some((name, argument)) => (name, Some(argument)),
        None => (spec, None),
    }
}

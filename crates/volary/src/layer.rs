//! Layers that a program adds.

use crate::layers::{LAYERS, Outside, Stacked, argument_of, layer_by_name};
use crate::names::{check_name, taken};
use crate::scheme::Needs;
use std::sync::Arc;
use volary_core::{Error, Fs, Kind, OptionSpec, Result};

type Make = dyn Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync;

/// A layer that a program adds, for `--layer NAME[=ARGUMENT]`.
pub struct LayerKind {
    spec: OptionSpec,
    make: Box<Make>,
    needs: Box<dyn Fn(&str) -> Needs + Send + Sync>,
}

impl LayerKind {
    /// Returns a layer that `make` puts over a volume. `make` gets the argument (empty if there is
    /// none) and access to the outside world.
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

    /// Sets the help: the argument, in brackets if it is optional and empty if there is none; and
    /// what the layer does.
    #[must_use]
    pub fn help(mut self, argument: &'static str, help: &'static str) -> Self {
        (self.spec.value, self.spec.help) = (argument, help);
        self
    }

    /// Sets what the layer needs of this host for an argument.
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

/// The layers that a program adds to the built-in ones.
#[derive(Clone, Default)]
pub(crate) struct Layers(Vec<Arc<LayerKind>>);

impl Layers {
    pub(crate) fn add(&mut self, layer: LayerKind) -> Result<()> {
        let name = layer.spec.name;
        check_name("the layer", name)?;
        if self.all().any(|other| other.name == name) {
            return Err(taken("the layer", name));
        }
        self.0.push(Arc::new(layer));
        Ok(())
    }

    /// Returns the built-in layers and the added ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OptionSpec> {
        LAYERS.iter().chain(self.0.iter().map(|layer| &layer.spec))
    }

    /// # Errors
    /// As [`Registry::layer`](crate::Registry::layer).
    pub(crate) fn put(&self, below: Fs, spec: &str, outside: &Arc<dyn Outside>) -> Result<Stacked> {
        let Some(own) = self.own(spec) else {
            if self.all().any(|layer| layer.name == name_of(spec)) {
                return layer_by_name(below, spec, outside);
            }
            let names: Vec<_> = self.all().map(|layer| layer.name).collect();
            let name = volary_core::escape(name_of(spec).as_bytes());
            let words = format!("unknown layer '{name}'; known are: {}", names.join(", "));
            return Err(Error::note(Kind::Invalid, words));
        };
        let argument = argument_of(&own.spec, given(spec))?;
        let fs = (own.make)(below, argument, outside)?;
        Ok(Stacked { fs, report: None })
    }

    pub(crate) fn needs(&self, spec: &str) -> Needs {
        let own = self.own(spec);
        own.map(|own| (own.needs)(given(spec).unwrap_or_default()))
            .unwrap_or_default()
    }

    /// Returns the program's own layer that `spec` names.
    fn own(&self, spec: &str) -> Option<&LayerKind> {
        let found = self.0.iter().find(|layer| layer.spec.name == name_of(spec));
        found.map(|layer| &**layer)
    }
}

/// Returns the name in `NAME=ARG`.
fn name_of(spec: &str) -> &str {
    spec.split_once('=').map_or(spec, |(name, _)| name)
}

/// Returns the argument in `NAME=ARG`.
fn given(spec: &str) -> Option<&str> {
    spec.split_once('=').map(|(_, argument)| argument)
}

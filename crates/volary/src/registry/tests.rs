use super::*;
use crate::{Place, Source};
use volary_core::{BlockDevice, Caps, Fs, OptionSpec, Options, Probe};
use volary_core::{Error, Kind};
use volary_mem::{Mem, MemOptions};

/// A format whose volumes begin with its name.
struct Named(&'static str, &'static [&'static str]);

impl Format for Named {
    fn name(&self) -> &'static str {
        self.0
    }
    fn kinds(&self) -> &'static [&'static str] {
        self.1
    }
    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>> {
        let mut head = vec![0; self.0.len()];
        dev.read_at(0, &mut head)?;
        let kind = self.1.first().copied().unwrap_or_default();
        Ok((head == self.0.as_bytes()).then_some(Probe { kind, label: None }))
    }
    fn attach(&self, _: Arc<dyn BlockDevice>, _: &Attach) -> Result<Fs> {
        memory()
    }
}

fn memory() -> Result<Fs> {
    Mem::attach(MemOptions::sized(1 << 20), Time::EPOCH)
}

const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "colour",
    value: "NAME",
    help: "",
}];

fn with_kv() -> Registry {
    let kv = Scheme::new("kv", |rest, how, _| match rest {
        b"bad" => Err(Error::from(Kind::NotFound)),
        _ if how.options.get("colour") == Some("red") => Err(Kind::Busy.into()),
        _ => memory(),
    });
    Registry::default().with(kv.options(OPTIONS).help("NAME", "keys"))
}

fn scheme(rest: &str) -> Source {
    Source::Scheme {
        name: "kv",
        rest: rest.into(),
    }
}

#[test]
fn a_scheme_is_a_source_and_nothing_else_is() {
    let registry = with_kv();
    let place = |text: &str| registry.place(text.as_bytes()).unwrap();
    let volume = |rest: &str, path: &str| Place::Volume {
        source: scheme(rest),
        path: path.into(),
    };
    for (text, expected) in [
        ("kv:config", volume("config", "/")),
        ("kv:", volume("", "/")),
        ("kv:config:/a/b", volume("config", "/a/b")),
        ("kv:config:", volume("config", "/")),
        ("kv:/srv/x:/a", volume("/srv/x", "/a")),
        (r"kv:a\:/b:/c", volume("a:/b", "/c")),
        (r"kv\:foo", Place::Host("kv:foo".into())),
        ("./kv:foo", Place::Host("./kv:foo".into())),
        ("kvx:foo", Place::Host("kvx:foo".into())),
        ("kv", Place::Host("kv".into())),
    ] {
        assert_eq!(place(text), expected, "{text}");
    }
    let image = Source::Image {
        path: "kv:foo".into(),
        partition: None,
    };
    assert_eq!(registry.source(br"kv\:foo").unwrap(), image);
    assert_eq!(Source::parse(b"kv:foo").unwrap(), image);
    assert_eq!(registry.without_slash(b"kv:foo"), None);
    assert!(Place::without_slash(b"kv:foo").is_some());
    assert_eq!(scheme("a").to_string(), "kv:a");
    let web = Registry::default().with_scheme("http", |_, _, _| memory());
    assert!(web.source(b"http://host/x").is_ok() && web.source(b"https://host/x").is_err());
}

#[test]
fn a_scheme_opens_volumes_with_its_own_options() {
    let registry = with_kv();
    let open = |rest: &str, options: &str| {
        let how = Attach {
            options: Options::parse(options),
            ..Attach::default()
        };
        registry
            .open_volume(&scheme(rest), &how, Time::EPOCH)
            .map(|opened| opened.fs.caps())
    };
    assert!(
        open("x", "colour=blue,commit=5,sync")
            .unwrap()
            .has(Caps::WRITE)
    );
    assert_eq!(open("x", "colour=red").unwrap_err(), Kind::Busy);
    assert_eq!(open("bad", "").unwrap_err(), Kind::NotFound);
    assert_eq!(open("x", "shape=round").unwrap_err(), Kind::Invalid);
    let absent = crate::open_volume(&scheme("x"), &Attach::default(), Time::EPOCH);
    assert_eq!(absent.err().unwrap(), Kind::Unsupported);
    assert!(
        registry
            .open_source(&scheme("x"), true, Time::EPOCH)
            .is_err()
    );
}

#[test]
fn a_name_that_is_taken_or_none_is_refused_in_words() {
    let mut registry = with_kv();
    let scheme = |name| Scheme::new(name, |_, _, _| memory());
    for name in [
        "mem", "host", "nfs", "kv", "", "k", "K2", "a:b", "a/b", "-a", "ü1", "a.b",
    ] {
        let e = registry.add_scheme(scheme(name)).unwrap_err();
        assert_eq!(e, Kind::Invalid, "{name}");
        assert!(e.to_string().contains("cannot be added"), "{e}");
    }
    static TWICE: Named = Named("twice", &["one", "one"]);
    static KIND: Named = Named("other", &["fat16"]);
    static ALIAS: Named = Named("vfat", &["vfat"]);
    static FAT: Named = Named("fat", &[]);
    static BAD: Named = Named("no name", &[]);
    for format in [&TWICE, &KIND, &ALIAS, &FAT, &BAD] {
        assert_eq!(
            registry.add_format(format).unwrap_err(),
            Kind::Invalid,
            "{}",
            format.0
        );
    }
    static NEW: Named = Named("newfs", &["new1", "new2"]);
    registry.add_format(&NEW).unwrap();
    assert_eq!(registry.add_format(&NEW).unwrap_err(), Kind::Invalid);
}

#[test]
#[should_panic(expected = "the scheme 'host' cannot be added")]
fn a_program_with_a_wrong_name_in_it_does_not_begin() {
    let _ = Registry::default().with_scheme("host", |_, _, _| memory());
}

#[test]
fn a_format_is_recognised_and_called_like_those_built_in() {
    static NEW: Named = Named("newfs", &["new1", "new2"]);
    let registry = Registry::default().with_format(&NEW);
    let mut bytes = b"newfs".to_vec();
    bytes.resize(1 << 20, 0);
    let dev: Arc<dyn BlockDevice> = Arc::new(crate::block::MemDevice::from_vec(bytes));
    let found = registry.find(dev.clone(), &Options::new()).unwrap();
    assert_eq!(found.format.name(), "newfs");
    assert_eq!(registry.identify(&*dev).unwrap().words(), "a new1 volume");
    assert!(registry.attach(dev.clone(), &Attach::default()).is_ok());
    assert_eq!(registry.format_of("NEW2").unwrap().name(), "newfs");
    assert_eq!(registry.kind_of("newfs", 1).unwrap().1, "new1");
    let told = crate::find(dev, &Options::new()).unwrap_err().to_string();
    assert!(!told.contains("new1"), "{told}");
    let told = registry.format_of("hfs").err().unwrap().to_string();
    assert!(told.contains("new2"), "{told}");
    // Formats without a magic number are probed last.
    #[cfg(feature = "v7")]
    assert_eq!(registry.formats().last().unwrap().name(), "v7");
}

#[cfg(feature = "layers")]
mod layers {
    use super::*;
    use crate::layers::{Nothing, Outside, ReadOnly};

    #[test]
    fn a_layer_is_put_over_a_volume_by_its_name() {
        let own = LayerKind::new("stop", |below, _, _| Ok(Arc::new(ReadOnly::new(below))));
        let own = own.help("WORD", "stops").needs(|word| Needs {
            reads: vec![word.into()],
            ..Needs::default()
        });
        let mut registry = Registry::default().with(own);
        let outside: Arc<dyn Outside> = Arc::new(Nothing);
        let over = |spec: &str| {
            let stacked = registry.layer(memory().unwrap(), spec, &outside);
            stacked.map(|stacked| stacked.fs.caps().has(Caps::WRITE))
        };
        assert!(!over("stop=x").unwrap() && !over("readonly").unwrap() && over("count").unwrap());
        let refusal = |spec: &str| over(spec).unwrap_err().to_string();
        assert_eq!(refusal("stop"), "layer stop needs an argument: stop=WORD");
        assert!(
            refusal("other").ends_with("crypt, stop"),
            "{}",
            refusal("other")
        );
        assert_eq!(
            registry.layer_needs("stop=/etc").reads,
            [std::path::Path::new("/etc")]
        );
        assert_eq!(registry.layer_needs("readonly"), Needs::default());
        for name in ["stop", "readonly", "Upper", ""] {
            let layer = LayerKind::new(name, |below, _, _| Ok(below));
            assert_eq!(
                registry.add_layer(layer).unwrap_err(),
                Kind::Invalid,
                "{name}"
            );
        }
    }
}
